"""Sixteen clients against a cap of three: it is never exceeded, and no work is lost."""

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.quotas.support import many, parked, policy, under
from tests.sql import claim, create, one, rows, table, violations, wait_for_lock

SECONDS = float(os.environ.get("PYFF_CHAOS_SECONDS", "3"))
CLIENTS = 16
CAP = 3
TTL = 300
RETRIES = {"retry_policy": {"max_retries": 1000, "backoff": {"type": "fixed", "delay_ms": 1}},
           "max_reclaim_count": 100_000}  # fmt: skip


class Client(threading.Thread):
    """Claims in every way, and ends its work in any way, or not at all."""

    def __init__(self, conn, number, deadline):
        super().__init__()
        self.conn = conn
        self.worker = {"worker_id": f"w{number}", "worker_instance_id": f"w{number}"}
        self.deadline = deadline
        self.random = random.Random(number)
        self.expiries: dict[str, int] = {}
        self.count: Counter[str] = Counter()
        self.failure: BaseException | None = None

    def run(self):
        try:
            while time.monotonic() < self.deadline:
                for row in self.claims():
                    self.count["claimed"] += 1
                    self.expiries[str(row["lease_id"])] = row["lease_expires_at_ms"]
                    self.end(row)
        except BaseException as failure:
            self.failure = failure

    def claims(self):
        way = self.random.random()
        if way < 0.5:
            return rows(self.conn, "ff_claim", lane_id="default", lease_ttl_ms=TTL, **self.worker)
        if way < 0.8:
            return rows(
                self.conn, "ff_claim_many", lane_id="default", limit=4, lease_ttl_ms=TTL, **self.worker
            )
        granted = rows(self.conn, "ff_claim_for_worker", lane_id="default", grant_ttl_ms=TTL, **self.worker)
        if not granted or self.random.random() < 0.1:
            return []
        try:
            found = rows(self.conn, "ff_claim_from_grant", grant_id=granted[0]["grant_id"], lease_ttl_ms=TTL,
                         **self.worker)  # fmt: skip
        except psycopg.Error as error:
            if error.sqlstate in ("WF209", "WF210") or "grant" in str(error):
                return []
            raise
        return [row for row in found if row["outcome"] == "claimed"]

    def end(self, row):
        time.sleep(self.random.random() * 0.004)
        way = self.random.random()
        handle = {"handle": row["handle"]}
        try:
            if way < 0.1:
                renewed = one(self.conn, "ff_renew", **handle)
                self.expiries[str(row["lease_id"])] = renewed["lease_expires_at_ms"]
            if way < 0.15:
                self.count["crashed"] += 1  # walks away
            elif way < 0.7:
                one(self.conn, "ff_complete", **handle)
            elif way < 0.8:
                one(self.conn, "ff_fail", **handle)
            elif way < 0.9:
                one(self.conn, "ff_delay", delay_ms=self.random.randrange(5), **handle)
            elif way < 0.95:
                one(self.conn, "ff_complete_many", handles=[row["handle"]])
            else:
                one(self.conn, "ff_revoke_lease", execution_id=row["execution_id"])
        except psycopg.Error as error:
            # Too slow: the lease had lapsed.
            if not str(error.sqlstate).startswith("WF"):
                raise


def most_at_once(db, expiries):
    """The largest number of concurrent leases, by their events or, for an expired one, by its expiry."""
    query = """select lease_id, event_type, occurred_at_ms from ff_event
                where family = 'lease' and event_type in ('acquired', 'reclaimed', 'released', 'expired', 'revoked')
                order by event_id"""
    starts, ends = {}, {}
    for row in table(db, query):
        lease = str(row["lease_id"])
        if row["event_type"] in ("acquired", "reclaimed"):
            starts[lease] = row["occurred_at_ms"]
            ends.setdefault(lease, expiries[lease])
        else:
            ends[lease] = min(row["occurred_at_ms"], expiries[lease])
    moments = sorted([(at, 1) for at in starts.values()] + [(ends[lease], -1) for lease in starts])
    level = highest = 0
    for _, step in moments:
        level += step
        highest = max(highest, level)
    return highest


@pytest.mark.parametrize(
    "isolation",
    ["read committed", pytest.param("repeatable read", marks=pytest.mark.slow("other isolation levels"))],
)
def test_the_cap_is_never_exceeded_and_no_work_is_lost(db, connect, isolation):
    seconds = SECONDS if isolation == "read committed" else min(SECONDS, 2)
    policy(db, at_once=CAP)
    many(db, 300, policy={"quota_policy_id": "q", **RETRIES})
    clients = []
    for number in range(CLIENTS):
        conn = connect()
        conn.execute(f"set default_transaction_isolation = '{isolation}'")
        conn.execute("set lock_timeout = '60s'")
        kind = Retrying if isolation != "read committed" else Client
        clients.append(kind(conn, number, time.monotonic() + 90))
    feeding = connect()
    for client in clients:
        client.start()
    deadline = time.monotonic() + seconds
    # On a busy machine as much longer as it takes for them to meet often enough.
    while time.monotonic() < deadline or (
        sum(client.count["claimed"] for client in clients) <= 10 * seconds
        and any(client.is_alive() for client in clients)
    ):
        time.sleep(0.1)
        if (
            table(feeding, "select count(*) as n from ff_exec_core where lifecycle_phase <> 'terminal'")[0][
                "n"
            ]
            < 200
        ):
            many(feeding, 200, policy={"quota_policy_id": "q", **RETRIES})
    for client in clients:
        client.deadline = 0
    for client in clients:
        client.join()
    assert [c.failure for c in clients if c.failure] == []
    expiries = {lease: at for client in clients for lease, at in client.expiries.items()}
    total = sum((client.count for client in clients), Counter())
    # Answers that a client never saw: their leases ran out unrenewed.
    for row in table(
        db, "select lease_id, occurred_at_ms from ff_event where event_type in ('acquired', 'reclaimed')"
    ):
        expiries.setdefault(str(row["lease_id"]), row["occurred_at_ms"] + TTL)
    assert most_at_once(db, expiries) <= CAP
    assert total["claimed"] > 10 * seconds
    assert violations(db) == []
    assert (
        table(db, "select deadlocks from pg_stat_database where datname = current_database()")[0]["deadlocks"]
        == 0
    )
    drain(db)
    assert (
        table(
            db, "select public_state, count(*) from ff_exec_core where public_state <> 'completed' group by 1"
        )
        == []
    )
    assert violations(db) == []


class Retrying(Client):
    """At REPEATABLE READ a call may have to be repeated."""

    def claims(self):
        try:
            return super().claims()
        except psycopg.errors.SerializationFailure:
            return []

    def end(self, row):
        try:
            super().end(row)
        except psycopg.errors.SerializationFailure:
            self.count["crashed"] += 1


def drain(db):
    """Empty claims release all parked work: no sweep runs."""
    deadline = time.monotonic() + 180
    left = "select count(*) as n from ff_exec_core where lifecycle_phase <> 'terminal'"
    while table(db, left)[0]["n"]:
        assert time.monotonic() < deadline, table(
            db, "select public_state, eligibility_state, count(*) from ff_exec_core group by 1, 2"
        )
        row = claim(db)
        if row:
            one(db, "ff_complete", handle=row["handle"])
        else:
            time.sleep(0.02)


def test_no_more_start_than_the_window_allows_however_many_ask(db, connect):
    policy(db, per_window=20, window=3600)
    many(db, 100, "q")
    found = []

    def ask(conn):
        while row := claim(conn):
            found.append(row["execution_id"])
            one(conn, "ff_complete", handle=row["handle"])

    threads = [threading.Thread(target=ask, args=[connect()]) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 20
    assert violations(db) == []


def test_batches_over_several_policies_do_not_deadlock(db, connect):
    names = [policy(db, f"q{n}", at_once=2) for n in range(5)]
    for number in range(100):
        under(db, names[number % 5], priority=(number * 7) % 5)
    done = []

    def work(conn):
        worker = {"worker_id": "w", "worker_instance_id": "w"}
        for _ in range(25):
            found = rows(conn, "ff_claim_many", lane_id="default", limit=5, **worker)
            rows(conn, "ff_complete_many", handles=[row["handle"] for row in found])
            done.extend(row["execution_id"] for row in found)

    threads = [threading.Thread(target=work, args=[connect()]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    drain(db)
    assert len(done) == len(set(done))
    assert parked(db) == 0
    assert (
        table(db, "select deadlocks from pg_stat_database where datname = current_database()")[0]["deadlocks"]
        == 0
    )
    assert violations(db) == []


def test_a_policy_attached_while_a_claim_looks_is_asked(db, connect):
    """The claim has read what is ready; the policy comes before it locks any of that."""
    policy(db, at_once=1)
    found = [create(db, priority=1) for _ in range(2)]
    (body,) = db.execute("select pg_get_functiondef('ff__lock_heads'::regproc)").fetchone()
    db.execute(body.replace("begin\n", "begin\n perform pg_advisory_xact_lock_shared(1);\n", 1))
    late, holder = connect(), connect()
    holder.execute("select pg_advisory_lock(1)")
    worker = {"worker_id": "w", "worker_instance_id": "w"}
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(rows, late, "ff_claim_many", lane_id="default", limit=2, **worker)
        wait_for_lock(db, late)
        for eid in found:
            one(db, "ff_attach_quota", quota_policy_id="q", execution_id=eid)
        holder.execute("select pg_advisory_unlock(1)")
        assert [row["execution_id"] for row in answer.result(90)] == found[:1]
    assert parked(db) == 1
    assert violations(db) == []
