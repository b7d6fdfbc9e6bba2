"""Slots for coroutines: tasks of one event loop, which runs in its own thread."""

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Iterable
from time import monotonic

from pyff.app.async_context import AsyncCtx
from pyff.app.control import Paused
from pyff.app.run import Run
from pyff.async_engine import AsyncEngine
from pyff.worker.execute import COMPLETE, set_outcome
from pyff.worker.put_off import arguments
from pyff.worker.state import State

log = logging.getLogger("pyff.worker")


class Loop:
    """Runs only tasks, nothing of the worker: a task that blocks the loop delays other async tasks, no renewals."""

    def __init__(self, state: State, dsn: str, size: int, *, prepare: bool) -> None:
        self.state = state
        self.size = size
        self.ready: deque[Run] = deque()
        self._dsn = dsn
        self._prepare = prepare
        self._running: dict[Run, asyncio.Task[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engines: tuple[AsyncEngine, AsyncEngine] | None = None
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = False

    def put(self, runs: Iterable[Run]) -> None:
        loop = self._started()
        self.ready.extend(runs)
        loop.call_soon_threadsafe(self._fill)

    def drain(self) -> list[Run]:
        found = []
        while self.ready:
            try:
                found.append(self.ready.popleft())
            except IndexError:
                break
        return found

    def interrupt(self, run: Run) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._cancel, run)

    def close(self) -> None:
        self._closing = True
        if self._loop is not None and self._thread is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, name="pyff-loop", daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self) -> None:
        assert self._loop is not None  # noqa: S101
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            while not self._closing:
                try:
                    loop.run_forever()
                    why = "stopped by a task"
                except BaseException as error:  # such as SystemExit in a coroutine that a task left behind
                    why = f"ended by {error!r}"
                if not self._closing:
                    log.error("the event loop was %s; restarting it", why)
        finally:
            with contextlib.suppress(Exception):
                loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), 5))
            for engine in self._engines or ():
                with contextlib.suppress(Exception):
                    loop.run_until_complete(asyncio.wait_for(engine.close(), 5))
            loop.close()

    def _fill(self) -> None:
        while self.ready and len(self._running) < self.size:
            run = self.ready.popleft()
            run.interrupt = self.interrupt
            self._running[run] = asyncio.get_running_loop().create_task(self._execute(run))
        self.state.check_low(len(self.ready))

    def _cancel(self, run: Run) -> None:
        task = self._running.get(run)
        if task is not None and run.started:  # a run that has not started checks run.lost itself
            task.cancel(run.lost)

    async def _execute(self, run: Run) -> None:
        task = run.task
        started = monotonic()
        try:
            run.started = started
            run.check()
            context = AsyncCtx(run, *self._get_engines())
            await context._enter()
            args = arguments(run)
            signature, fn = task.signature, task.fn  # type: ignore[union-attr]
            value = await (fn(context, *args) if signature.wants_context else fn(*args))
            if run.lost is not None or run.paused:
                set_outcome(run, Paused())
            else:
                run.result = signature.result.encode(value)
                run.outcome = COMPLETE
        except BaseException as error:
            set_outcome(run, error)
        run.busy_s = monotonic() - started
        del self._running[run]
        self.state.finish(run)
        self._fill()

    def _get_engines(self) -> tuple[AsyncEngine, AsyncEngine]:
        """The engines for calls and for transactions, see Worker.start."""
        if self._engines is None:
            self._engines = self._make_engine(), self._make_engine()
        return self._engines

    def _make_engine(self) -> AsyncEngine:
        return AsyncEngine(
            self._dsn,
            prepare_threshold=5 if self._prepare else None,
            check_schema=False,
            max_size=max(2, min(self.size, 10)),
        )
