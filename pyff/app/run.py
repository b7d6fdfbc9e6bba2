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
"""Guards `lost` and `shields` between the threads that interrupt a run and its own. Held only briefly."""


class Run:
    """The claimed row, and the state of its run in this process.

    `lost`: why the lease is lost; set once, from any thread. `paused`: the task has released its lease; `pausing`: it
    is about to, so a rejected renewal is ignored.
    """

    __slots__ = (
        "attempt_index",
        "busy_s",
        "capped_ms",
        "claimed_at",
        "clear_interrupt",
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
        self.deadline = 0.0  # monotonic: end of the lease as measured by this process
        self.claimed_at = 0.0
        self.started = 0.0
        self.busy_s = 0.0
        self.lost: str | None = None
        self.paused = False
        self.pausing = False
        self.sleeps_s: float | None = None
        self.unreachable = False  # the connection was lost during a call of the task
        self.outcome = ""
        self.result: bytes | None = None
        self.error: BaseException | None = None
        self.interrupt: Callable[[Run], None] | None = None  # interrupts the task, from any thread
        self.clear_interrupt: Callable[[], None] | None = (
            None  # takes an interrupt back that has not interrupted yet, in the thread of the task
        )
        self.shields = 0
        self.progress_before: str | None = None  # the message before the first report of this run

    @property
    def continues(self) -> bool:
        """Whether an earlier run of this execution may have left steps, or a signal that it did not receive."""
        return self.handle_kind != "fresh" or self.attempt_index > 0

    def lose(self, reason: str) -> None:
        """Marks the lease as lost and interrupts the task; its outcome is discarded."""
        with _guard:
            if self.lost is None:
                self.lost = reason
                if not self.shields and self.interrupt is not None:
                    self.interrupt(self)

    def check(self) -> None:
        """Raises if the run is paused or has lost its lease."""
        if self.paused:
            raise Paused
        if self.lost is not None:
            raise TaskCancelled(self.lost)


class Shield(AbstractContextManager[None]):
    """A block that is not interrupted: an interrupt in the block is raised at its end, a pending one at its start."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __enter__(self) -> None:
        run = self._run
        with _guard:
            if run.shields or run.lost is None:
                run.shields += 1
                return
            if run.clear_interrupt is not None:
                run.clear_interrupt()
        run.check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run = self._run
        with _guard:
            run.shields = max(0, run.shields - 1)  # 0 if an interrupt was raised at the start of an Exposed
        if not run.shields and error is None:
            run.check()


class Call(Shield):
    """A database call from a sync task: an asynchronous exception could lose a connection of the pool."""


class Exposed(AbstractContextManager[None]):
    """A block of user code inside a shield that can be interrupted."""

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
        interrupted = None
        while True:
            try:
                with _guard:
                    run.shields = self._shields
                    if run.lost is not None and run.clear_interrupt is not None:
                        run.clear_interrupt()
                break
            except TaskCancelled as late:  # the interrupt was raised here
                interrupted = late
        if error is None:
            if interrupted is not None:
                raise interrupted
            run.check()


class AsyncExposed(nullcontext[None]):
    """See AsyncCall."""

    def __init__(self, run: Run) -> None:
        super().__init__()


class AsyncCall(nullcontext[None]):
    """Nothing to do: a coroutine is cancelled where it awaits, which connections handle."""

    def __init__(self, run: Run) -> None:
        super().__init__()


__all__ = ["AsyncCall", "AsyncExposed", "Call", "Exposed", "Run", "Shield"]
