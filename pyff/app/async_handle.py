# Written by hand. `python -m tools.codegen` generates handle.py from this file.
"""The handle of a submitted call: its state, its result, its cancellation."""

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
"""How long `result` waits for an unreachable server to come back."""


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
        """The result of the task. Waits for it, for `timeout` seconds or without limit, and across a server restart.

        Raises: TaskFailed if the task did not complete; WaitTimeout; ExecutionNotFound.
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
                raise ValueError("cannot wait for a result inside a transaction; commit first")
            if until is not None and monotonic() >= until:
                raise WaitTimeout(
                    f"execution {self.execution_id} is {found.public_state}",
                    detail={"execution_id": self.execution_id, "public_state": found.public_state},
                )
            left = pause if until is None else min(pause, max(0.0, until - monotonic()))
            await asyncio.sleep(left)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    async def state(self) -> PublicState:
        """The state of the execution.

        Raises: ExecutionNotFound.
        """
        found = await self._engine.read_execution_state(self.execution_id)
        if found is None:
            raise ExecutionNotFound(detail={"execution_id": self.execution_id})
        return found.public_state

    async def describe(self) -> DescribeExecutionResult | None:
        """All details of the execution; None if it was trimmed."""
        return await self._engine.describe_execution(self.execution_id)

    async def cancel(self, reason: str = "") -> bool:
        """Cancels the execution, running or not. False if it was already cancelled.

        Raises: ExecutionNotFound, ExecutionAlreadyTerminal.
        """
        result = await self._engine.cancel_execution(self.execution_id, reason=reason)
        return result.outcome == "cancelled"


__all__ = ["AsyncHandle"]
