"""Random suspensions, signals, resumes, timeouts, cancellations, rotations; then the invariants."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.executions.driver import EXPECTED, Client, results
from tests.sql import Row, one, rows, table, violations
from tests.suspensions.support import (
    OPERATOR_ONLY,
    TIMEOUT_ONLY,
    all_of,
    count,
    deliver,
    seed,
    single,
    suspend,
)

# The errors a client may get when others act on the same suspension. Any other is a bug.
ALSO = {
    "WF114",  # a waitpoint of an earlier attempt
    "WF121",  # a token whose waitpoint was signed anew
    "WF120",  # a replay of a suspension whose waitpoint is closed and whose key is gone has no token to show
    "WF122",
    "WF305",
    "WF407",
    "WF413",
    "WF414",
    "WF415",
    "WF416",
}

CONDITIONS = [
    single("a", "go"),
    single("a"),
    all_of(single("a", "go"), single("b", "go")),
    count(2, "signals", ["a", "b"]),
    count(2, "waitpoints", ["a", "b"], {"one_of": ["go", "ok"]}),
    count(2, "sources", ["a"]),
    OPERATOR_ONLY,
    TIMEOUT_ONLY,
]
BEHAVIORS = ["fail", "cancel", "expire", "auto_resume_with_timeout_signal", "escalate"]


class Waiter(Client):
    """A client that suspends and signals as well. Points are shared with others through `board`."""

    def __init__(self, conn: psycopg.Connection[Any], seed: int, board: list[tuple[str, Row]]) -> None:
        super().__init__(conn, seed)
        self.board = board
        self.resumed: Counter[str] = Counter()

    def step(self) -> None:
        operations = {
            self.create: 4,
            self.claim: 12,
            self.complete: 3,
            self.fail: 2,
            self.delay: 2,
            self.cancel_execution: 1,
            self.revoke: 1,
            self.replay: 2,
            self.expire: 1,
            self.suspend: 12,
            self.create_waitpoint: 5,
            self.close_waitpoint: 1,
            self.signal: 20,
            self.approve: 2,
            self.resume: 2,
            self.expire_suspension: 4,
            self.observe: 2,
            self.rotate: 1,
            self.remint: 1,
        }
        operation = self.random.choices(list(operations), weights=list(operations.values()))[0]
        try:
            operation()
            self.counts[operation.__name__] += 1
        except psycopg.Error as error:
            if error.sqlstate not in EXPECTED | ALSO:
                raise
            self.counts[f"{operation.__name__} {error.sqlstate}"] += 1

    def suspend(self) -> None:
        handle = self.handle()
        if handle is None:
            return
        condition = self.random.choice(CONDITIONS)
        mine = [p for h, p in self.board if h == handle and p.get("pending") and p["waitpoint_key"] == "a"]
        waitpoints = None
        if mine and condition["kind"] == "single":
            waitpoints = [{"use_pending": str(self.random.choice(mine)["waitpoint_id"])}]
        timeout: Row = {}
        if condition is TIMEOUT_ONLY or self.random.random() < 0.5:
            timeout = {
                "timeout_ms": self.random.choice([1, 40, 400]),
                "timeout_behavior": self.random.choice(BEHAVIORS),
            }
        policy = {
            key: self.random.random() < 0.5
            for key in (
                "close_waitpoint_on_resume",
                "consume_matched_signals",
                "retain_signal_buffer_until_closed",
            )
            if self.random.random() < 0.5
        }
        found = suspend(
            self.conn,
            handle,
            condition,
            waitpoints=waitpoints,
            policy={**policy, "resume_delay_ms": self.random.choice([0, 0, 20])},
            idempotency_key=self.random.choice([None, None, json.dumps([condition, policy])[:200]]),
            **timeout,
        )
        self.counts[found[0]["outcome"]] += 1
        eid = self.execution_of(handle)
        self.board += [(handle, {**row, "execution_id": eid}) for row in found]

    def execution_of(self, handle: str) -> str:
        return str(one(self.conn, "ff_handle_decode", handle=handle)["execution_id"])

    def create_waitpoint(self) -> None:
        if handle := self.handle():
            key = self.random.choice("ab")
            point = one(
                self.conn,
                "ff_create_waitpoint",
                handle=handle,
                waitpoint_key=key,
                expires_in_ms=self.random.choice([30, 10_000]),
            )
            self.board.append((handle, {**point, "execution_id": self.execution_of(handle), "pending": True}))

    def close_waitpoint(self) -> None:
        for handle, point in self.board[-3:]:
            if point.get("pending"):
                one(self.conn, "ff_close_waitpoint", handle=handle, waitpoint_id=point["waitpoint_id"])

    def point(self) -> Row | None:
        return (
            self.random.choice(self.random.choice([self.board, self.board[-6:]]))[1] if self.board else None
        )

    def signal(self) -> None:
        if point := self.point():
            answer = deliver(
                self.conn,
                point,
                point,
                self.random.choice(["go", "go", "ok", "noise"]),
                payload=self.random.choice([None, b"1"]),
                source_identity=self.random.choice(["", "s", "t"]),
                idempotency_key=self.random.choice([None, f"k{self.random.randrange(1000)}"]),
                dedup_ttl_ms=self.random.choice([0, 50, 86_400_000]),
            )
            if answer["resumed"]:
                self.resumed[point["execution_id"]] += 1

    def approve(self) -> None:
        if point := self.point():
            lane = one(self.conn, "ff_read_execution_info", execution_id=point["execution_id"])["lane_id"]
            answer = one(
                self.conn,
                "ff_deliver_approval_signal",
                execution_id=point["execution_id"],
                lane_id=lane,
                waitpoint_id=point["waitpoint_id"],
                signal_name="go",
                idempotency_suffix=str(self.random.randrange(3)),
            )
            if answer["resumed"]:
                self.resumed[point["execution_id"]] += 1

    def resume(self) -> None:
        if point := self.point():
            one(self.conn, "ff_resume_execution", execution_id=point["execution_id"])

    def expire_suspension(self) -> None:
        if point := self.point():
            one(self.conn, "ff_expire_suspension", execution_id=point["execution_id"])

    def observe(self) -> None:
        if handle := self.handle():
            rows(self.conn, "ff_observe_signals", handle=handle)

    def rotate(self) -> None:
        one(
            self.conn,
            "ff_rotate_waitpoint_hmac_secret",
            new_kid=f"{self.name}-{self.random.randrange(10**9)}",
            grace_ms=self.random.choice([0, 100, 10_000]),
        )

    def remint(self) -> None:
        if point := self.point():
            args = {"execution_id": point["execution_id"], "waitpoint_id": point["waitpoint_id"]}
            for found in rows(self.conn, "ff_read_waitpoint_token", **args):
                point.update(waitpoint_token=found["waitpoint_token"])


@settings(
    suppress_health_check=list(HealthCheck), deadline=None, max_examples=8, derandomize=True, database=None
)
@given(seed_=st.integers(0, 2**32), steps=st.lists(st.integers(0, 60), min_size=60, max_size=120))
def test_one_client_and_a_moving_clock_leave_a_sound_database(db, clock, seed_, steps):
    with db.transaction(force_rollback=True):
        clock.freeze()
        seed(db)
        client = Waiter(db, seed_, [])
        for advance in steps:
            clock.advance(advance)
            client.step()
        assert violations(db) == []
        assert results(db) == client.completed


@pytest.mark.slow("other isolation levels")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_stricter_isolation_changes_no_answer(db, connect, level):
    seed(db)
    conn = connect()
    conn.execute(f"set default_transaction_isolation = '{level}'")
    client = Waiter(conn, 1, [])
    for _ in range(200):
        client.step()
    assert violations(db) == []
    assert results(db) == client.completed


@pytest.mark.slow("long run")
def test_concurrent_clients_leave_a_sound_database(db, connect):
    seed(db)
    board: list[tuple[str, Row]] = []
    clients = [Waiter(connect(), number, board) for number in range(6)]

    def work(client: Waiter) -> None:
        for _ in range(600):
            client.step()

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(work, clients))
    assert violations(db) == []
    assert results(db) == {h: r for client in clients for h, r in client.completed.items()}
    total = sum((client.counts for client in clients), start=Counter())
    resumed = sum((client.resumed for client in clients), start=Counter())
    stored = Counter(
        f"{{fp:{r['p']}}}:{r['e']}"
        for r in table(
            db,
            """select c.partition_key as p, s.execution_id::text as e
                 from ff_suspension s join ff_exec_core c using (execution_id) where s.close_reason = 'resumed'""",
        )
    )
    assert stored == resumed  # every resumption that a caller got is stored once, and no other
    assert total["suspended"] > 20, total
    assert total["signal"] > 20, total
    assert sum(resumed.values()) > 3, total
    deadlocks = table(db, "select deadlocks from pg_stat_database where datname = current_database()")
    assert deadlocks == [{"deadlocks": 0}]
