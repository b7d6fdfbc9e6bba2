"""What tasks raise, and what is raised in them."""

from pyff.failure import Failure
from pyff.types import PublicState


class Fail(Exception):  # noqa: N818
    """Raise it to end a task as failed, with a reason for people and a category for programs.

    `retryable=False`: no further attempt, whatever the retry policy says.
    """

    def __init__(self, reason: str, *, retryable: bool = True, category: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.category = category


class TaskCancelled(Exception):  # noqa: N818
    """Raised in a task that has lost its lease: cancelled, revoked, timed out, taken over, or the worker stops.

    Whatever the task still returns is thrown away, and nothing that it writes through its context is accepted. Clean up
    and let it pass. In an async task the same comes as asyncio.CancelledError.
    """

    def __init__(self, reason: str = "cancelled") -> None:
        super().__init__(reason)
        self.reason = reason


class TaskFailed(Failure):
    """The execution whose result was asked for ended otherwise: `state` says how, `reason` why."""

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
    """Two steps, waits, sleeps or children of one name in one run of a task."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there are two {name!r} in this task",
            hint="Names tell recorded results apart. In a loop, put what makes an item unique into the name.",
        )


class NotConnected(Failure):
    """An App is a registry: it has no database of its own."""

    def __init__(self) -> None:
        super().__init__("no database to talk to", hint="Give conn=, or app.bind(engine) once.")


class CannotRun(Exception):  # noqa: N818
    """The code at hand, or the settings of the database, do not let this execution go on: it is put off."""


class Paused(BaseException):
    """Unwinds a task that waits. Not an Exception: `except Exception` in a task must not stop it. Let it pass."""


__all__ = ["CannotRun", "DuplicateStep", "Fail", "NotConnected", "Paused", "TaskCancelled", "TaskFailed"]
