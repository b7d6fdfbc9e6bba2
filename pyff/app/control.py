"""Exceptions that tasks raise, and that are raised in tasks."""

from pyff.failure import Failure
from pyff.types import PublicState


class Fail(Exception):  # noqa: N818
    """Raise it to fail a task, with a reason for people and a category for programs.

    `retryable=False`: no further attempt, whatever the retry policy says.
    """

    def __init__(self, reason: str, *, retryable: bool = True, category: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.category = category


class TaskCancelled(Exception):  # noqa: N818
    """Raised in a task that has lost its lease: cancelled, revoked, timed out, taken over, or the worker stops.

    The result of the task is discarded, and the database rejects writes through its context. Clean up and let the
    exception propagate. An async task gets asyncio.CancelledError instead.
    """

    def __init__(self, reason: str = "cancelled") -> None:
        super().__init__(reason)
        self.reason = reason


class TaskFailed(Failure):
    """The execution whose result was requested did not complete: `state` is how it ended, `reason` why."""

    def __init__(
        self,
        execution_id: str,
        state: PublicState | str,
        *,
        reason: str | None = None,
        category: str | None = None,
    ) -> None:
        super().__init__(f"execution {execution_id} {state}" + (f": {reason}" if reason else ""))
        self.execution_id = execution_id
        self.state = state
        self.reason = reason
        self.category = category


class DuplicateStep(Failure, ValueError):  # noqa: N818
    """Two steps, waits, sleeps or children with the same name in one run of a task."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the name {name!r} is already used in this task",
            hint="Names identify recorded results. In a loop, include a unique part of the item in the name.",
        )


class NotConnected(Failure):
    """The app has no engine, and no `conn=` was given."""

    def __init__(self) -> None:
        super().__init__(
            "the app is not connected to a database", hint="Give conn=, or call app.bind(engine) once."
        )


class CannotRun(Exception):  # noqa: N818
    """The deployed code, or the settings of the database, cannot run this execution: it is put off."""


class Paused(BaseException):
    """Unwinds a task that waits. Not an Exception: `except Exception` in a task must not catch it. Let it propagate."""


__all__ = ["CannotRun", "DuplicateStep", "Fail", "NotConnected", "Paused", "TaskCancelled", "TaskFailed"]
