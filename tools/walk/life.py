"""One execution, from its creation to its end, with a flow behind it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from pyff.engine import Engine
from pyff.migrate import migrate
from pyff.postgres import temporary
from pyff.types import JsonValue
from tools.walk.trace import Call, instrument, traced

LANE, WORKER = "walk", "worker"


@dataclass(frozen=True)
class Step:
    title: str
    calls: list[Call]


class Life:
    """A member of a flow on which another member depends. Each step is one call of a client."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn
        self._engine = Engine(conn, check_schema=False)

    def steps(self) -> Iterator[Step]:
        flow = UUID(str(self._engine.create_flow().flow_id))
        with self._step("create") as create:
            execution = self._engine.create_execution(LANE, flow_id=flow, payload=b"hello").execution_id
        yield create
        behind = self._engine.create_execution(LANE, flow_id=flow).execution_id
        self._engine.add_dependency(flow, execution, behind)
        with self._step("claim") as claim:
            handle = self._claim(execution)
        yield claim
        with self._step("suspend") as suspend:
            condition: Mapping[str, JsonValue] = {
                "kind": "single",
                "waitpoint_key": "approval",
                "matcher": {"by_name": "approve"},
            }
            (waitpoint,) = self._engine.suspend(handle, condition)
        yield suspend
        with self._step("signal") as signal:
            token = str(waitpoint.waitpoint_token)
            self._engine.deliver_signal(execution, waitpoint.waitpoint_id, token, "approve")
        yield signal
        with self._step("resume") as resume:
            handle = self._claim(execution)
        yield resume
        with self._step("complete") as complete:
            self._engine.complete(handle, result=b"done")
        yield complete
        self._engine.complete(self._claim(behind))

    def _claim(self, execution: str) -> str:
        claimed = self._engine.claim(LANE, WORKER, WORKER)
        if claimed is None or claimed.execution_id != execution:
            raise RuntimeError(f"{execution} was not claimed")
        return claimed.handle

    @contextmanager
    def _step(self, title: str) -> Iterator[Step]:
        with traced(self._conn) as calls:
            yield Step(title, calls)


def walk() -> list[Step]:
    """The second life on a new database: the first one registers the lane and its queues."""
    with temporary() as server:
        migrate(server.dsn)
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            instrument(conn)
            list(Life(conn).steps())
            return list(Life(conn).steps())
