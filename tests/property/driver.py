"""Random clients of the SQL surface. They remember what they were told, and never look behind it."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

from tests.sql import Row, one, rows

LANES = ("a", "b")
TOKENS = ("x", "y")

# What a client may be told when others act on the same execution. Anything else is a bug.
EXPECTED = {"WF300", "WF400", "WF401", "WF402", "WF403"}


class Client:
    """One connection that does random things, and keeps its handles and acknowledged results."""

    def __init__(self, conn: psycopg.Connection[Any], seed: int) -> None:
        self.conn = conn
        self.random = random.Random(seed)
        self.name = f"client-{seed}"
        self.handles: list[str] = []
        self.completed: dict[str, bytes] = {}
        self.created: set[str] = set()
        self.counts: Counter[str] = Counter()

    def step(self) -> None:
        operation: Callable[[], object] = self.random.choices(
            [self.create, self.claim, self.renew, self.complete, self.forget], weights=[4, 6, 3, 4, 1]
        )[0]
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
        if self.handles:
            one(
                self.conn,
                "ff_renew",
                handle=self.random.choice(self.handles),
                lease_ttl_ms=self.random.choice([None, 1, 500]),
            )

    def complete(self) -> None:
        if self.handles:
            handle = self.random.choice(self.handles)
            result = self.random.randbytes(8)
            answer = one(self.conn, "ff_complete", handle=handle, result=result)
            if not answer["replayed"]:
                assert handle not in self.completed
                self.completed[handle] = result

    def forget(self) -> None:
        """A worker that crashes: its handles are gone, its leases live on."""
        self.handles.clear()
