"""Random clients of the SQL functions. They know only the results of their calls."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

from tests.sql import Row, one, rows, table

LANES = ("a", "b")
TOKENS = ("x", "y")

# The errors a client may get when others act on the same execution. Any other is a bug.
EXPECTED = {"WF300", "WF400", "WF401", "WF402", "WF403", "WF405", "WF406", "WF408", "WF417"}

# What ends an attempt for good: its answer is remembered as long as the attempt.
ENDS = ("ff_complete", "ff_fail", "ff_cancel")


class Client:
    """One connection that does random things, and keeps its handles and acknowledged results."""

    def __init__(self, conn: psycopg.Connection[Any], seed: int) -> None:
        self.conn = conn
        self.random = random.Random(seed)
        self.name = f"client-{seed}"
        self.handles: list[str] = []
        self.completed: dict[str, bytes] = {}
        self.created: set[str] = set()
        self.known: list[str] = []
        self.answers: list[tuple[str, str, Row]] = []
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        operations: dict[Callable[[], object], int] = {
            self.create: 8,
            self.claim: 14,
            self.renew: 4,
            self.progress: 2,
            self.complete: 10,
            self.fail: 6,
            self.delay: 4,
            self.cancel: 1,
            self.repeat: 4,
            self.override: 1,
            self.cancel_execution: 1,
            self.revoke: 2,
            self.change_priority: 2,
            self.replay: 4,
            self.mark: 2,
            self.promote: 2,
            self.expire: 2,
            self.append: 10,
            self.watch: 2,
            self.forget: 1,
        }
        operation = self.random.choices(list(operations), weights=list(operations.values()))[0]
        try:
            operation()
            self.counts[operation.__name__] += 1
        except psycopg.Error as error:
            if error.sqlstate not in EXPECTED:
                raise
            self.counts[f"{operation.__name__} {error.sqlstate}"] += 1

    def create(self) -> None:
        policy: Row = {}
        if self.random.random() < 0.3:
            policy["max_reclaim_count"] = self.random.randrange(3)
        if self.random.random() < 0.3:
            policy["max_replay_count"] = self.random.randrange(3)
        if self.random.random() < 0.3:
            policy["timeout_policy"] = {"attempt_timeout_ms": self.random.randrange(1, 400)}
        if self.random.random() < 0.3:
            policy["retry_policy"] = {
                "max_retries": self.random.randrange(3),
                "backoff": {"type": "fixed", "delay_ms": self.random.randrange(100)},
            }
        if self.random.random() < 0.2:
            policy.setdefault("timeout_policy", {})["execution_deadline_ms"] = self.random.randrange(
                100, 1000
            )
        answer = one(
            self.conn,
            "ff_create_execution",
            lane_id=self.random.choice(LANES),
            priority=self.random.randrange(3),
            required_capabilities=self.random.sample(TOKENS, self.random.randrange(3)),
            delay_ms=self.random.choice([None, None, 0, 50]),
            idempotency_key=self.random.choice([None, f"key-{self.random.randrange(50)}"]),
            policy=policy,
        )
        self.created.add(answer["execution_id"])
        self.known.append(answer["execution_id"])

    def claim(self) -> None:
        for row in rows(
            self.conn,
            "ff_claim",
            lane_id=self.random.choice(LANES),
            worker_id=self.name,
            worker_instance_id=self.name,
            capabilities=self.random.sample(TOKENS, self.random.randrange(3)),
            lease_ttl_ms=self.random.choice([1, 50, 300, 1000]),
        ):
            self.handles.append(row["handle"])

    def renew(self) -> None:
        if handle := self.handle():
            one(self.conn, "ff_renew", handle=handle, lease_ttl_ms=self.random.choice([None, 1, 500]))

    def progress(self) -> None:
        if handle := self.handle():
            one(self.conn, "ff_progress", handle=handle, percent=self.random.randrange(101))

    def complete(self) -> None:
        result = self.random.randbytes(8)
        ended = self.give_up("ff_complete", result=result)
        if ended:
            assert ended not in self.completed
            self.completed[ended] = result

    def fail(self) -> None:
        self.give_up(
            "ff_fail", classification=self.random.choice(["transient", "transient", "timeout", "permanent"])
        )

    def delay(self) -> None:
        self.give_up("ff_delay", delay_ms=self.random.choice([0, 0, 1, 60]))

    def cancel(self) -> None:
        self.give_up("ff_cancel", reason="random")

    def give_up(self, verb: str, **args: Any) -> str | None:
        """A verb that ends the lease: the handle it was called with, unless it was a repetition."""
        handle = self.handle()
        if handle is None:
            return None
        answer = one(self.conn, verb, handle=handle, **args)
        if answer["replayed"]:
            return None
        self.answers.append((verb, handle, answer))
        return handle

    def repeat(self) -> None:
        """A worker that did not get the answer repeats the call: it gets the same, whatever has happened since."""
        if not self.answers:
            return
        verb, handle, answer = self.random.choice(self.answers)
        args = {"delay_ms": 7} if verb == "ff_delay" else {}
        try:
            assert one(self.conn, verb, handle=handle, **args) == {**answer, "replayed": True}
        except psycopg.Error as error:
            # Of the pauses of an attempt only the latest is remembered, and none after it. A snapshot may be stale.
            assert verb not in ENDS or error.sqlstate == "40001", error
            raise

    def override(self) -> None:
        self.control("ff_fail_execution", source="operator_override")
        self.control("ff_delay_execution", source="operator_override", delay_ms=self.random.choice([0, 30]))

    def cancel_execution(self) -> None:
        self.control(
            "ff_cancel_execution", source=self.random.choice(["operator_override", "system_timeout"])
        )

    def revoke(self) -> None:
        self.control("ff_revoke_lease")

    def change_priority(self) -> None:
        self.control("ff_change_priority", priority=self.random.randrange(-1, 5))

    def replay(self) -> None:
        self.control("ff_replay_execution")

    def append(self) -> None:
        if handle := self.handle():
            mode = self.random.choice(["durable", "durable_summary", "best_effort_live"])
            payload = b'{"n": %d}' % self.random.randrange(9)
            one(
                self.conn,
                "ff_append_frame",
                handle=handle,
                payload=payload,
                mode=mode,
                frame_key=self.random.choice([None, None, self.name + mode + payload.decode()]),
                maxlen=self.random.choice([None, 2, 5]),
                maxlen_floor=1,
                maxlen_ceiling=3,
            )

    def watch(self) -> None:
        if handle := self.handle():
            fence = one(self.conn, "ff_handle_decode", handle=handle)
            where = {name: fence[name] for name in ("execution_id", "attempt_index")}
            one(self.conn, "ff_watch_stream", **where, ttl_ms=100)

    def mark(self) -> None:
        self.control("ff_mark_lease_expired_if_due")

    def promote(self) -> None:
        self.control("ff_promote_delayed")

    def expire(self) -> None:
        self.control(
            "ff_expire_execution", phase=self.random.choice(["attempt_timeout", "execution_deadline"])
        )

    def control(self, name: str, **args: Any) -> None:
        """An operation on some execution, more often than not a young one."""
        if self.known:
            eid = self.random.choice(self.random.choice([self.known, self.known[-8:]]))
            one(self.conn, name, execution_id=eid, **args)

    def handle(self) -> str | None:
        """One of its handles, more often than not a young one."""
        if not self.handles:
            return None
        return self.random.choice(self.random.choice([self.handles, self.handles[-4:], self.handles[-4:]]))

    def forget(self) -> None:
        """A worker that crashes: its handles are gone, its leases live on."""
        self.handles.clear()


def results(db):
    """Every stored result by the fence that stored it."""
    query = """
        select e.partition_key, a.* from ff_attempt a join ff_exec_core e using (execution_id)
         where a.outcome = 'success'
    """
    return {
        one(
            db,
            "ff_handle_encode",
            execution_id=f"{{fp:{row['partition_key']}}}:{row['execution_id']}",
            attempt_index=row["attempt_index"],
            lease_id=row["lease_id"],
            lease_epoch=row["lease_epoch"],
            attempt_id=row["attempt_id"],
        )["handle"]: bytes(row["result"])
        for row in table(db, query)
    }
