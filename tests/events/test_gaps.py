"""Slow, aborting and overtaking writers, dying readers: no event is lost or repeated, and causes come first."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.events.support import EMITTERS, FAMILIES, read, stored
from tests.sql import create, one, rows, table, take, violations

WRITERS = 16
ENOUGH = 300  # transactions
PATIENCE = 120.0  # seconds, on a machine that is busy with something else
EXPECTED = {"40001", "40P01", "WF400", "WF401", "WF402", "WF403", "WF405"}


class Writer:
    """One connection. Its transactions make up to four calls, may be slow, and are sometimes rolled back."""

    def __init__(self, conn, number, shared, flows):
        self.conn = conn
        self.random = random.Random(number)
        self.name = f"writer-{number}"
        self.shared = shared
        self.flows = flows
        self.committed = 0
        self.given_up = 0

    def run(self, stop):
        while not stop.is_set():
            try:
                if self.random.random() < 0.3:
                    # An early transaction id that acts late.
                    self.conn.execute("select pg_current_xact_id()")
                    self.pause()
                for _ in range(self.random.randint(1, 4)):
                    self.random.choice(
                        [self.cycle, self.batch, self.priority, self.worker, self.wait, self.wait, self.flow]
                    )()
                    self.pause()
                if self.random.random() < 0.25:
                    self.conn.rollback()
                    self.given_up += 1
                else:
                    self.conn.commit()
                    self.committed += 1
            except psycopg.Error as error:
                assert error.sqlstate in EXPECTED, error
                self.conn.rollback()
                self.given_up += 1

    def pause(self):
        time.sleep(
            self.random.choice([0, 0, 0, 0.001, 0.005, 0.02, 0.15 if self.random.random() < 0.1 else 0])
        )

    def cycle(self):
        create(self.conn, lane=self.name, tags={"test.half": self.random.choice("ab")})
        row = take(self.conn, self.name)
        if self.random.random() < 0.5:
            one(self.conn, "ff_renew", handle=row["handle"])
        verb = self.random.choice(["ff_complete", "ff_cancel", "ff_fail"])
        one(self.conn, verb, handle=row["handle"])

    def batch(self):
        """Rows that hold many events."""
        lane = f"{self.name}-batch"
        worker = {"worker_id": "w", "worker_instance_id": self.name}
        rows(self.conn, "ff_create_executions", lane_id=lane, payloads=[b""] * self.random.randint(1, 6))
        # Also executions of the transactions that were given up, whose leases go on.
        claimed = rows(self.conn, "ff_claim_many", lane_id=lane, limit=self.random.randint(1, 9), **worker)
        handles = [row["handle"] for row in claimed]
        if self.random.random() < 0.3:
            rows(self.conn, "ff_renew_many", handles=handles)
        if self.random.random() < 0.8:
            rows(self.conn, "ff_complete_many", handles=self.random.sample(handles, len(handles)))

    def priority(self):
        eid = self.random.choice(self.shared)
        one(self.conn, "ff_change_priority", execution_id=eid, priority=self.random.randrange(9000))

    def worker(self):
        worker = {"worker_instance_id": f"w-{self.random.randrange(12)}"}
        if self.random.random() < 0.5:
            one(self.conn, "ff_register_worker", **worker, worker_id="w", lanes=["x"])
        else:
            one(self.conn, "ff_mark_worker_dead", **worker)

    def wait(self):
        lane = f"{self.name}-waits"
        eid = create(self.conn, lane=lane)
        condition = {"kind": "single", "waitpoint_key": "a", "matcher": "wildcard"}
        waits = one(self.conn, "ff_suspend", handle=take(self.conn, lane)["handle"], condition=condition)
        signal = {"waitpoint_id": waits["waitpoint_id"], "signal_name": "go", "idempotency_suffix": "1"}
        one(self.conn, "ff_deliver_approval_signal", execution_id=eid, lane_id=lane, **signal)
        one(self.conn, "ff_cancel_execution", execution_id=eid)

    def flow(self):
        self.conn.execute(
            "select test_emit_flow(%s, %s)",
            [self.random.choice(self.flows), self.random.choice(["created", "started"])],
        )


class Reader:
    """Stores the events it read with its cursor, and sometimes dies before or right after the commit."""

    def __init__(self, connect, name, **args):
        self.connect = connect
        self.name = name
        self.args = args
        self.random = random.Random(name)
        self.deaths = 0

    def run(self, over):
        conn = self.connect(autocommit=False)
        while True:
            last = over.is_set() and self.overtakes(conn, over.xid)
            after = table(conn, "select cursor from test_cursor where name = %s", self.name)[0]["cursor"]
            page = rows(
                conn,
                "ff_read_events",
                after=after,
                limit=self.random.choice([1, 3, 17, 200]),
                max_scan=self.random.choice([5, 40, 10_000]),
                watermark=True,
                **self.args,
            )
            *found, mark = page
            for event in found:
                conn.execute(
                    "insert into test_seen (name, event_id, cursor) values (%s, %s, %s)",
                    [self.name, event["event_id"], event["cursor"]],
                )
            conn.execute("update test_cursor set cursor = %s where name = %s", [mark["cursor"], self.name])
            fate = self.random.random()
            if fate < 0.05:
                conn.close()  # in the middle of everything
            else:
                conn.commit()
                if fate < 0.1:
                    conn.close()
            if conn.closed:
                self.deaths += 1
                conn = self.connect(autocommit=False)
            elif last and not found and mark["details"]["at_horizon"]:
                return
            time.sleep(self.random.choice([0, 0.01, 0.03]))

    @staticmethod
    def overtakes(conn, xid):
        """Whether no transaction older than this one is left: another reader's open page holds the horizon, too."""
        return table(conn, "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as n")[0]["n"] > xid


class Over(threading.Event):
    """The writers are done; `xid` is younger than all of theirs."""

    xid: int


@pytest.fixture
def busy(db, connect):
    """All clients run for some seconds; returns the readers by name, after they have read everything."""
    one(db, "ff_seed_waitpoint_hmac_secret", kid="k1")
    db.execute(EMITTERS)
    db.execute("create table test_seen (n bigserial, name text, event_id bigint, cursor text)")
    db.execute("alter table test_seen add primary key (name, event_id)")
    db.execute("create table test_cursor (name text primary key, cursor text)")
    shared = [create(db, "shared") for _ in range(20)]
    flows = [row["id"] for row in table(db, "select gen_random_uuid() as id from generate_series(1, 10)")]
    for flow in flows:
        db.execute("insert into test_flow (flow_id) values (%s)", [flow])
    readers = {
        **{name: Reader(connect, name, family=name) for name in FAMILIES},
        "all": Reader(connect, "all"),
        "all b": Reader(connect, "all b", tags={"test.half": "b"}),
        "types": Reader(connect, "types", event_types=["released", "failed", "started"]),
    }
    for name in readers:
        db.execute("insert into test_cursor values (%s, null)", [name])
    writers = [Writer(connect(autocommit=False), n, shared, flows) for n in range(WRITERS)]
    stop, over = threading.Event(), Over()
    with ThreadPoolExecutor(WRITERS + len(readers)) as pool:
        reading = [pool.submit(reader.run, over) for reader in readers.values()]
        writing = [pool.submit(writer.run, stop) for writer in writers]
        try:
            until = time.monotonic() + PATIENCE
            while not enough(db, writers, readers) and time.monotonic() < until:
                time.sleep(0.1)
            stop.set()
            for done in writing:
                done.result()
        finally:
            stop.set()
            over.xid = table(db, "select pg_current_xact_id()::text::bigint as n")[0]["n"]
            over.set()
        for done in reading:
            done.result()
    assert enough(db, writers, readers)
    return readers


def enough(db, writers, readers):
    """Whether all cases occurred: commits, rollbacks, deaths, transactions that wrote after a younger one."""
    return (
        sum(w.committed for w in writers) >= ENOUGH
        and sum(w.given_up for w in writers) >= ENOUGH / 5
        and sum(r.deaths for r in readers.values()) >= 10
        and table(db, "select count(*) as n from ff_event_log where ord > xmin::text::bigint")[0]["n"] >= 5
        and len(table(db, "select family from ff_event group by 1 having count(*) >= 20")) == len(FAMILIES)
    )


def place(cursor):
    return tuple(int(part) for part in cursor.split(".")[1:])


@pytest.mark.slow("long run")
@pytest.mark.read_committed("wants transactions that act after younger ones, which a snapshot forbids")
def test_every_committed_event_is_seen_once_and_causes_come_before_effects(db, busy):
    def wanted(name):
        events = stored(db, name if name in FAMILIES else None)
        if name == "all b":
            events = [e for e in events if (e["tags"] or {}).get("test.half") == "b"]
        elif name == "types":
            events = [e for e in events if e["event_type"] in ("released", "failed", "started")]
        return events

    for name in busy:
        seen = table(db, "select event_id, cursor from test_seen where name = %s order by n", name)
        events = wanted(name)
        assert len(events) > 10, name
        # In the one order, none twice (a primary key saw to that), none missing.
        assert [e["event_id"] for e in seen] == [e["event_id"] for e in events], name
        places = [place(e["cursor"]) for e in seen]
        assert places == sorted(places)
    # Event ids are given under the lock of the execution or flow: along one of them they are cause and effect.
    order = {e["event_id"]: n for n, e in enumerate(read_everything(db))}
    for key in ("execution_id", "flow_id"):
        query = f"select {key} as k, array_agg(event_id order by event_id) as ids from ff_event"
        for row in table(db, f"{query} where {key} is not null group by 1"):
            ranks = [order[event_id] for event_id in row["ids"]]
            assert ranks == sorted(ranks)
    assert violations(db) == []


def read_everything(db):
    found, after = [], None
    while page := read(db, after=after, limit=1000):
        found += page
        after = page[-1]["cursor"]
    return found
