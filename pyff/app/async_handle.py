# Written by hand. `python -m pyff.codegen` generates handle.py from this file.
"""The handle of a submitted call: where it stands, what came of it, how to stop it."""

import asyncio
from time import monotonic
from typing import Generic, Literal, TypeVar, cast

import psycopg

from pyff._generated.errors import ExecutionNotFound, WaitTimeout
from pyff._generated.results import DescribeExecutionResult
from pyff.app.control import TaskFailed
from pyff.async_engine import AsyncEngine
from pyff.codecs.codec import Codec
from pyff.connection_lost import connection_lost
from pyff.types import PublicState

R_co = TypeVar("R_co", covariant=True)

ENDED = frozenset({"completed", "failed", "cancelled", "expired", "skipped"})
LONGEST_PAUSE = 0.25
PATIENCE_S = 60.0
"""So long a server that is gone may take to come back, while somebody waits for a result."""


class AsyncHandle(Generic[R_co]):
    """`outcome` says whether the call was created by this submission, or is a duplicate of an earlier one."""

    def __init__(
        self,
        execution_id: str,
        codec: Codec[object],
        engine: AsyncEngine,
        outcome: Literal["created", "duplicate"] | None = None,
    ) -> None:
        self.execution_id = execution_id
        self.outcome = outcome
        self._codec = codec
        self._engine = engine

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.execution_id}>"

    async def result(self, timeout: float | None = None) -> R_co:
        """What the task returned. Waits for it, for ever or for `timeout` seconds, through a restart of the server too.

        Raises: TaskFailed if it ended otherwise; WaitTimeout; ExecutionNotFound.
        """
        until = None if timeout is None else monotonic() + timeout
        pause = 0.002
        seen = monotonic()
        while True:
            try:
                found = await self._engine.get_execution_result(self.execution_id)
            except psycopg.OperationalError as error:
                over = seen + PATIENCE_S if until is None else min(until, seen + PATIENCE_S)
                if not connection_lost(error) or monotonic() >= over:
                    raise
                await asyncio.sleep(LONGEST_PAUSE)
                continue
            seen = monotonic()
            if found is None:
                raise ExecutionNotFound(detail={"execution_id": self.execution_id})
            if found.public_state == "completed":
                return cast("R_co", self._codec.decode(found.result))
            if found.public_state in ENDED:
                raise TaskFailed(
                    self.execution_id,
                    found.public_state,
                    reason=found.failure_reason,
                    category=found.failure_category,
                )
            if self._engine._connection_in_transaction() is not None:
                raise ValueError("result: inside a transaction nothing could be seen to end; commit first")
            if until is not None and monotonic() >= until:
                raise WaitTimeout(
                    f"execution {self.execution_id} is {found.public_state}",
                    detail={"execution_id": self.execution_id, "public_state": found.public_state},
                )
            left = pause if until is None else min(pause, max(0.0, until - monotonic()))
            await asyncio.sleep(left)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    async def state(self) -> PublicState:
        """Where it stands.

        Raises: ExecutionNotFound.
        """
        found = await self._engine.read_execution_state(self.execution_id)
        if found is None:
            raise ExecutionNotFound(detail={"execution_id": self.execution_id})
        return found.public_state

    async def describe(self) -> DescribeExecutionResult | None:
        """Everything that is known about it; None when it has been trimmed."""
        return await self._engine.describe_execution(self.execution_id)

    async def cancel(self, reason: str = "") -> bool:
        """Cancels it, running or not. False if it was cancelled before.

        Raises: ExecutionNotFound, ExecutionAlreadyTerminal.
        """
        answer = await self._engine.cancel_execution(self.execution_id, reason=reason)
        return answer.outcome == "cancelled"


__all__ = ["AsyncHandle"]
