"""Random clients under quota policies: whatever they do, the limits hold and nothing is lost."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.executions.driver import LANES, Client
from tests.sql import Row, one, rows, table, violations

SECONDS = 3
PATIENCE = 90  # on a machine that is busy with something else
POLICIES = {
    "slots": {"max_concurrent": 2},
    "starts": {"max_requests_per_window": 5, "window_seconds": 1, "jitter_ms": 20},
    "both": {"max_concurrent": 3, "max_requests_per_window": 6, "window_seconds": 2},
    "unlimited": {},
}


def define(db: psycopg.Connection[Any]) -> None:
    for name, limits in POLICIES.items():
        one(db, "ff_create_quota_policy", quota_policy_id=name, **limits)


class Limited(Client):
    def step(self) -> None:
        if self.random.random() < 0.6:
            super().step()
            return
        operation = self.random.choice(
            [
                self.attach,
                self.detach,
                self.hold,
                self.block,
                self.unblock,
                self.sweep,
                self.grant,
                self.batch,
            ]
        )
        try:
            operation()
            self.counts[operation.__name__] += 1
        except psycopg.Error as error:
            if not str(error.sqlstate).startswith("WF") or error.sqlstate == "WF500":
                raise
            self.counts[f"{operation.__name__} {error.sqlstate}"] += 1

    def policy(self) -> str:
        return self.random.choice(list(POLICIES))

    def create(self) -> None:
        super().create()
        if self.random.random() < 0.8:
            self.attach(self.known[-1])

    def attach(self, eid: str | None = None) -> None:
        if eid or self.known:
            eid = eid or self.random.choice(self.known[-8:])
            if table(self.conn, "select ff_read_execution_state(%s) as s", eid)[0]["s"] in (
                "(waiting)",
                "(delayed)",
            ):
                one(self.conn, "ff_attach_quota", quota_policy_id=self.policy(), execution_id=eid)

    def detach(self) -> None:
        self.control("ff_detach_quota")

    def hold(self) -> None:
        if self.known:
            args: Row = {
                "quota_policy_id": self.policy(),
                "execution_id": self.random.choice(self.known[-8:]),
            }
            hold_ms = self.random.randrange(1, 300)
            one(self.conn, "ff_check_admission", hold_ms=hold_ms, **args)
            if self.random.random() < 0.5:
                one(self.conn, "ff_release_admission", refund_rate=False, **args)

    def block(self) -> None:
        reasons = ["waiting_for_quota", "paused_by_operator"]
        self.control("ff_block_execution_for_admission", reason=self.random.choice(reasons))

    def unblock(self) -> None:
        self.control("ff_unblock_execution")

    def sweep(self) -> None:
        assert one(self.conn, "ff_sweep_admissions")["errors"] == 0

    def worker(self) -> Row:
        return {"worker_id": self.name, "worker_instance_id": self.name}

    def grant(self) -> None:
        args = {"lane_id": self.random.choice(LANES), "capabilities": ["x", "y"], "grant_ttl_ms": 100}
        for row in rows(self.conn, "ff_claim_for_worker", **args, **self.worker()):
            if self.random.random() < 0.8:
                claimed = one(self.conn, "ff_claim_from_grant", grant_id=row["grant_id"], **self.worker())
                self.handles += [claimed["handle"]] if claimed["handle"] else []

    def batch(self) -> None:
        args = {
            "lane_id": self.random.choice(LANES),
            "capabilities": ["x", "y"],
            "limit": 5,
            "lease_ttl_ms": 300,
        }
        self.handles += [row["handle"] for row in rows(self.conn, "ff_claim_many", **args, **self.worker())]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=15,
)
@given(seed_=st.integers(0, 2**32), steps=st.lists(st.integers(0, 200), min_size=20, max_size=120))
def test_one_client_and_a_moving_clock_leave_a_sound_database(db, clock, seed_, steps):
    with db.transaction(force_rollback=True):
        clock.freeze()
        define(db)
        client = Limited(db, seed_)
        for advance in steps:
            clock.advance(advance)
            client.step()
        assert violations(db) == []


@pytest.mark.slow("long run")
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_concurrent_clients_leave_a_sound_database(db, connect, level):
    define(db)
    clients = [Limited(connect(), seed) for seed in range(6)]
    stop = time.monotonic() + SECONDS
    for client in clients:
        client.conn.execute(f"set default_transaction_isolation = '{level}'")

    def enough() -> bool:
        return all(sum(client.counts[kind] for client in clients) > 10 for kind in ("complete", "batch"))

    def work(client: Limited) -> None:
        while (now := time.monotonic()) < stop or (not enough() and now < stop + PATIENCE):
            try:
                client.step()
            except psycopg.errors.SerializationFailure:
                assert level != "read committed"

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(work, clients))
    assert violations(db) == []
    total = sum((client.counts for client in clients), start=Counter())
    assert total["complete"] > 10, total
    assert total["batch"] > 10, total
    deadlocks = table(db, "select deadlocks from pg_stat_database where datname = current_database()")
    assert deadlocks == [{"deadlocks": 0}]
