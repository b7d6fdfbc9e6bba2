"""Slots for plain functions: threads that are started on demand."""

import ctypes
import threading
from collections import deque
from collections.abc import Iterable
from functools import cache
from time import monotonic

from pyff.app.context import Ctx
from pyff.app.control import Paused, TaskCancelled
from pyff.app.run import Run
from pyff.engine import Engine
from pyff.worker.execute import COMPLETE, set_outcome
from pyff.worker.put_off import arguments
from pyff.worker.state import State

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)
_NOTHING = ctypes.py_object()
"""NULL, which clears a pending exception. None would be raised as an invalid exception."""


@cache
def _cancelled(reason: str) -> type[TaskCancelled]:
    """An exception class that Python can instantiate without arguments, as interrupting a thread requires: the
    instance is a TaskCancelled with this reason."""

    class Interrupt(TaskCancelled):
        def __init__(self) -> None:
            super().__init__(reason)
            self.__class__ = TaskCancelled  # type: ignore[assignment]

    return Interrupt


class Slot:
    """A thread, its current run, and the lock under which it is interrupted."""

    def __init__(self, pool: "Threads", number: int) -> None:
        self._pool = pool
        self._parked = threading.Lock()
        self._parked.acquire()
        self._guard = threading.Lock()
        self._run: Run | None = None
        self._thread = threading.Thread(target=self._loop, name=f"pyff-slot-{number}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._parked.release()

    def interrupt(self, run: Run) -> None:
        """Raises TaskCancelled in the code of the run, at its next instruction; a blocking call ends first."""
        with self._guard:
            if self._run is run and self._thread.ident is not None:
                _raise_in(self._thread.ident, ctypes.py_object(_cancelled(run.lost or "cancelled")))

    def clear_interrupt(self) -> None:
        """Clears a pending interrupt."""
        _raise_in(self._thread.ident or 0, _NOTHING)

    def _loop(self) -> None:
        pool = self._pool
        pool.waking = False
        while True:
            run = pool.take(self)
            if run is None:
                if not pool.closed:  # close() wakes each slot that is idle by then
                    self._parked.acquire()
                pool.waking = False
                if pool.closed:
                    return
                continue
            self._execute(run)
            pool.state.finish(run)

    def _execute(self, run: Run) -> None:
        task = run.task
        started = monotonic()
        try:
            run.started = started
            try:
                run.interrupt, run.clear_interrupt = self.interrupt, self.clear_interrupt
                with self._guard:
                    self._run = run
                if run.lost is not None:
                    raise TaskCancelled(run.lost)
                context = Ctx(run, self._pool.engine, self._pool.transactions)
                context._enter()
                args = arguments(run)
                signature, fn = task.signature, task.fn  # type: ignore[union-attr]
                value = fn(context, *args) if signature.wants_context else fn(*args)
            finally:
                self._leave(run)
            if run.lost is not None or run.paused:
                set_outcome(run, Paused())
            else:
                run.result = signature.result.encode(value)
                run.outcome = COMPLETE
        except BaseException as error:
            set_outcome(run, error)
        run.busy_s = monotonic() - started

    def _leave(self, run: Run) -> None:
        """Ends the part of the thread that can be interrupted: it is between two runs."""
        interrupted = None
        while True:
            try:
                with self._guard:
                    self._run = None
                    if run.lost is not None:
                        self.clear_interrupt()
                break
            except TaskCancelled as late:  # the interrupt was raised here
                interrupted = late
        if interrupted is not None:
            raise interrupted


class Threads:
    def __init__(self, state: State, engine: Engine, transactions: Engine, size: int) -> None:
        self.state = state
        self.engine = engine
        self.transactions = transactions
        self.size = size
        self.ready: deque[Run] = deque()
        self.closed = False
        self.waking = False
        self._idle: deque[Slot] = deque()
        self._slots: list[Slot] = []
        self._starting = threading.Lock()

    def put(self, runs: Iterable[Run]) -> None:
        self.ready.extend(runs)
        self._wake()

    def take(self, slot: Slot) -> Run | None:
        """The next run, or None: the slot is parked and waits for `wake`."""
        ready = self.ready
        try:
            run = ready.popleft()
        except IndexError:
            self._idle.append(slot)
            if not ready:
                self.state.check_low(0)
                return None
            try:
                self._idle.remove(slot)
            except ValueError:  # another thread is already waking it
                return None
            return self.take(slot)
        left = len(ready)
        self.state.check_low(left)
        if left and not self.waking:
            self._wake()
        return run

    def drain(self) -> list[Run]:
        """Removes and returns the runs that no slot has started."""
        found = []
        while self.ready:
            try:
                found.append(self.ready.popleft())
            except IndexError:
                break
        return found

    def close(self) -> None:
        self.closed = True
        while self._idle:
            try:
                self._idle.pop().wake()
            except IndexError:
                break

    def _wake(self) -> None:
        """Wakes one slot; it wakes the next one if work is left when it runs."""
        try:
            slot = self._idle.pop()
        except IndexError:
            with self._starting:
                if len(self._slots) < self.size and not self.closed:
                    self.waking = True
                    self._slots.append(Slot(self, len(self._slots)))
            return
        self.waking = True
        slot.wake()
