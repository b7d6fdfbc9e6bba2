"""One claimed execution in this process."""

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pyff.app.control import Paused, TaskCancelled

if TYPE_CHECKING:
    from pyff.app.task import Task

_guard = threading.Lock()
"""Between those who interrupt a run and the shields of it. Seldom taken, never for long."""


class Run:
    """What the claim returned, and what has become of it here.

    `lost`: why the lease is gone; set once, from any thread. `paused`: the task has given its lease back itself;
    `pausing`: it is about to, so that a refused renewal means nothing.
    """

    __slots__ = (
        "attempt_index",
        "busy_s",
        "capped_ms",
        "claimed_at",
        "deadline",
        "error",
        "execution_id",
        "flow_id",
        "handle",
        "handle_kind",
        "interrupt",
        "kind",
        "lane",
        "lost",
        "namespace",
        "outcome",
        "paused",
        "pausing",
        "payload",
        "progress_before",
        "recall",
        "result",
        "shields",
        "sleeps_s",
        "started",
        "tags",
        "task",
        "unreachable",
    )

    def __init__(  # noqa: PLR0917
        self,
        handle: str,
        handle_kind: str,
        execution_id: str,
        kind: str,
        payload: bytes | None,
        attempt_index: int,
        flow_id: UUID | None = None,
        lane: str = "",
        namespace: str = "default",
        tags: Mapping[str, str] | None = None,
        capped_ms: int | None = None,
    ) -> None:
        self.handle = handle
        self.handle_kind = handle_kind
        self.execution_id = execution_id
        self.kind = kind
        self.payload = payload
        self.attempt_index = attempt_index
        self.flow_id = flow_id
        self.lane = lane
        self.namespace = namespace
        self.tags = tags
        self.capped_ms = capped_ms
        self.task: Task[*tuple[Any, ...], Any] | None = None
        self.deadline = 0.0  # monotonic: when the lease is over, judged from this side
        self.claimed_at = 0.0
        self.started = 0.0
        self.busy_s = 0.0
        self.lost: str | None = None
        self.paused = False
        self.pausing = False
        self.sleeps_s: float | None = None
        self.unreachable = False  # the database was lost while the task needed it
        self.outcome = ""
        self.result: bytes | None = None
        self.error: BaseException | None = None
        self.interrupt: Callable[[Run], None] | None = None  # stops the code of the task, from any thread
        self.recall: Callable[[], None] | None = (
            None  # takes an interrupt back that has not struck yet, in the thread of the task
        )
        self.shields = 0
        self.progress_before: str | None = None  # the message that the first report of this run has replaced

    @property
    def continues(self) -> bool:
        """Whether there was a run of this execution before: it may have left steps, or a signal that it did not see."""
        return self.handle_kind != "fresh" or self.attempt_index > 0

    def lose(self, reason: str) -> None:
        """The lease is gone: the task is told, its outcome no longer counts."""
        with _guard:
            if self.lost is None:
                self.lost = reason
                if not self.shields and self.interrupt is not None:
                    self.interrupt(self)

    def check(self) -> None:
        """Raises what a task that goes on in vain has to be told."""
        if self.paused:
            raise Paused
        if self.lost is not None:
            raise TaskCancelled(self.lost)


class Shield(AbstractContextManager[None]):
    """A stretch of a task that is not interrupted. What came meanwhile is raised at its end; what came just before it,
    at its beginning."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __enter__(self) -> None:
        run = self._run
        with _guard:
            if run.shields or run.lost is None:
                run.shields += 1
                return
            if run.recall is not None:
                run.recall()
        run.check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run = self._run
        with _guard:
            run.shields = max(
                0, run.shields - 1
            )  # 0 if an interrupt came at the very beginning of an Exposed
        if not run.shields and error is None:
            run.check()


class Call(Shield):
    """A call of the database from a plain function: an exception out of nowhere could lose a connection of the pool."""


class Exposed(AbstractContextManager[None]):
    """A stretch of the user's code inside a shield, which may be interrupted all the same."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._shields = 0

    def __enter__(self) -> None:
        run = self._run
        with _guard:
            self._shields = run.shields
            if run.lost is None:
                run.shields = 0
                return
        run.check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run = self._run
        struck = None
        while True:
            try:
                with _guard:
                    run.shields = self._shields
                    if run.lost is not None and run.recall is not None:
                        run.recall()
                break
            except TaskCancelled as late:  # the interrupt came here
                struck = late
        if error is None:
            if struck is not None:
                raise struck
            run.check()


class AsyncExposed(nullcontext[None]):
    """See AsyncCall."""

    def __init__(self, run: Run) -> None:
        super().__init__()


class AsyncCall(nullcontext[None]):
    """A coroutine is cancelled where it awaits, which connections bear."""

    def __init__(self, run: Run) -> None:
        super().__init__()


__all__ = ["AsyncCall", "AsyncExposed", "Call", "Exposed", "Run", "Shield"]
