"""The worker: claims executions, runs their tasks, reports the outcomes."""

import contextlib
import logging
import math
import os
import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from types import FrameType, TracebackType
from typing import Literal, Self
from uuid import uuid4

import psycopg

from pyff.app.registry import App
from pyff.app.run import Run
from pyff.engine import Engine
from pyff.engine_error import EngineError
from pyff.failure import Failure
from pyff.worker.claimer import Claimer, Lanes
from pyff.worker.execute import RELEASE, fields
from pyff.worker.finisher import Finisher
from pyff.worker.health import Health
from pyff.worker.link import Link, conninfo
from pyff.worker.listener import Listener
from pyff.worker.loop import Loop
from pyff.worker.observer import Observer
from pyff.worker.peers import SESSION, Peers
from pyff.worker.renewer import LeaseRenewer, Watch
from pyff.worker.slot_limit import SlotLimit
from pyff.worker.state import State
from pyff.worker.statements import CLAIM, MARK_STOPPED
from pyff.worker.threads import Threads
from pyff.worker.ticker import Ticker

log = logging.getLogger("pyff.worker")

CALL_TIMEOUT_S = 30.0
MAX_READY_S = 1.0
"""How long work that was claimed ahead may wait for a slot."""


class Worker:
    """Runs the tasks of an app.

    `lanes`: names, or names with weights ({"mail": 1, "billing": 3}: three times as often while both have work); by
    default those of the tasks. `slots`: how many tasks run at a time; plain functions in threads, coroutines on one
    event loop. `capabilities`: matched against the `needs` of executions. `lease_ttl_ms`: after how long other workers
    take over the work of a machine that is gone; leases are renewed after a third of it. The work of a dead process is
    taken over after about three seconds.

    `run` blocks until SIGTERM or SIGINT: then the worker stops claiming, lets running tasks finish for `drain_s`
    seconds and releases all other executions. A second signal releases them at once. As a context manager, or with
    `start` and `stop`, the worker runs in the background.

    `prepare=False` is for a connection pooler in transaction mode; `listen_dsn` then names a direct connection for
    LISTEN, without which it polls every `poll_s` seconds.
    """

    def __init__(
        self,
        app: App,
        dsn: str,
        *,
        lanes: Iterable[str] | Mapping[str, float] | None = None,
        slots: int = 16,
        capabilities: Iterable[str] = (),
        lease_ttl_ms: int = 10_000,
        poll_s: float = 1.0,
        drain_s: float = 30.0,
        worker_id: str | None = None,
        batch: int = 500,
        listen: bool = True,
        listen_dsn: str | None = None,
        prepare: bool = True,
        maintain: bool = True,
        observers: Sequence[Observer] = (),
    ) -> None:
        if slots < 1:
            raise ValueError("slots: must be at least 1")
        if not 1 <= batch <= 1_000:
            raise ValueError("batch: must be between 1 and 1000")
        if isinstance(lanes, str):
            raise TypeError("lanes: expected an iterable of lane names, got a string")
        weights = lanes if isinstance(lanes, Mapping) else dict.fromkeys(lanes or app.lanes(), 1.0)
        if not weights or not all(0 < weight < math.inf for weight in weights.values()):
            raise ValueError("lanes: give at least one, with weights above 0")
        if not poll_s > 0:
            raise ValueError("poll_s: must be above 0")
        self.app = app
        self.worker_id = worker_id or socket.gethostname() or "worker"
        self.instance_id = ""
        self._dsn = conninfo(dsn)
        self._listen_dsn = conninfo(listen_dsn) if listen_dsn else (self._dsn if listen and prepare else None)
        self._lanes = Lanes({str(lane): float(weight) for lane, weight in weights.items()})
        self._slots = slots
        self._batch = batch
        self._capabilities = sorted(set(capabilities))
        self._ttl_ms = lease_ttl_ms
        self._poll_s = poll_s
        self._drain_s = drain_s
        self._prepare = prepare
        self._maintain = maintain
        self._observers = list(observers)
        self._phase: Literal["new", "running", "draining", "stopped"] = "new"
        self._stop_requested = threading.Event()
        self._stop_now = threading.Event()
        self._stop_lock = threading.Lock()
        self._crash = ""

    # --- life ---------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Works until SIGTERM, SIGINT or `shutdown`. Call it from the main thread to have signals handled.

        Raises: Failure, if a thread of the worker crashed; remaining executions were released where possible.
        """
        with self._signals():
            self.start()
            self._stop_requested.wait()
            self.stop()
        if self._crash:
            raise Failure(
                f"the worker crashed: {self._crash}",
                hint="See the log for the traceback. Start the worker again.",
            )

    def shutdown(self) -> None:
        """Ends `run` as a signal would: the first call drains, the second one stops at once."""
        if self._stop_requested.is_set():
            self._stop_now.set()
        self._stop_requested.set()

    def start(self) -> None:
        """Starts working in the background. Raises if the database cannot be reached or rejects the worker."""
        if self._phase != "new":
            raise RuntimeError("a worker can be started only once; create another one")
        if not self.app.tasks:
            raise Failure("the app has no tasks", hint="Import the modules that register them.")
        kinds = {
            task.signature.is_async for task in self.app.tasks.values()
        }  # an invalid signature raises here
        self._state = State(self._slots, self._batch)
        # Two pools: a call made inside a task's transaction must not wait for connections that transactions hold.
        self._engine, self._transactions = (
            Engine(
                self._dsn,
                prepare_threshold=5 if self._prepare else None,
                max_size=max(2, min(self._slots, 10)),
            )
            for _ in range(2)
        )
        name = str(uuid4())  # not derived from the host: a restarted worker is another instance
        identity = {
            "worker_id": self.worker_id,
            "instance_id": name,
            "namespace": self.app.namespace,
            "capabilities": self._capabilities,
            "lanes": sorted(self._lanes.weights),
            "ttl_ms": self._ttl_ms,
        }
        keeping = Link(
            self._dsn, "renew", prepare=self._prepare, instance_id=SESSION + name if self._prepare else None
        )
        try:
            supported = self._check_database(identity)
            keeping.connect()
        except BaseException:
            self._engine.close()
            keeping.drop()
            raise
        if keeping.holds_lock:
            identity["instance_id"] = SESSION + name
        self.instance_id = str(identity["instance_id"])
        self._pid = os.getpid()
        state = self._state
        names = ["claim", "report"]
        if self._maintain and "maintenance" in supported:
            names.append("maintain")
        self._links = {name: Link(self._dsn, name, prepare=self._prepare) for name in names}
        self._links["renew"] = keeping
        self._threads = Threads(state, self._engine, self._transactions, self._slots)
        self._loop = Loop(state, self._dsn, self._slots, prepare=self._prepare)
        self._pools: list[Threads | Loop | SlotLimit] = [self._threads, self._loop]
        self._slot_limit: SlotLimit | None = None
        if len(kinds) > 1:
            self._slot_limit = SlotLimit(self._slots, self._assign)
            state.on_outcome = self._slot_limit.leave
            self._pools.insert(0, self._slot_limit)
        self._claimer = Claimer(
            state,
            self._links["claim"],
            self._lanes,
            arguments=identity,
            dispatch=self._dispatch,
            poll_s=self._poll_s,
        )
        self._finisher = Finisher(
            state,
            self._links["report"],
            observe=self._observe if self._observers else None,
            due=self._due,
            max_put_offs=self.app.max_put_offs,
        )
        self._renewer = LeaseRenewer(state, self._links["renew"], self._ttl_ms, identity)
        self._watch = Watch(state, list(self._links.values()), CALL_TIMEOUT_S, self._release_stuck)
        self._listener: Listener | None = None
        self._ticker: Ticker | None = None
        self._background: dict[str, threading.Thread] = {}
        self._spawn("watch", self._watch.serve)
        self._spawn("renew", self._renewer.serve)
        self._spawn("report", self._finisher.serve)
        if self._listen_dsn is not None:
            self._listener = Listener(
                self._listen_dsn, self._notify_lane, self._renewer.renew_now, self._notify_all_lanes
            )
            self._spawn("listen", self._listener.serve)
        if "maintain" in self._links:
            link = self._links["maintain"]
            self._ticker = Ticker(link, Peers(link, identity), lambda: self._claimer.idle)
            self._spawn("maintain", self._ticker.serve)
        self._spawn("claim", self._claimer.serve)
        self._phase = "running"
        log.info(
            "worker %s started on lanes %s",
            self.instance_id,
            ", ".join(self._lanes.weights),
            extra={"worker_id": self.worker_id, "instance_id": self.instance_id, "slots": self._slots},
        )

    def stop(self, drain_s: float | None = None) -> None:
        """Drains, releases the remaining executions, and ends all threads but those of tasks that do not stop."""
        with self._stop_lock:
            if (
                self._phase != "running" or self._pid != os.getpid()
            ):  # a fork has neither threads nor connections
                return
            self._phase = "draining"
            state = self._state
            until = monotonic() + (self._drain_s if drain_s is None else drain_s)
            log.info("draining", extra={"leases": len(state.runs)})
            state.draining.set()
            state.room.set()
            while self._background["claim"].is_alive():
                self._background["claim"].join(0.1)
                if self._stop_now.is_set() or monotonic() > until + 1:
                    self._links["claim"].abort()
            for pool in self._pools:
                for run in pool.drain():
                    self._release_run(run)
            while state.active() > 0 and monotonic() < until and not self._stop_now.wait(0.01):
                pass
            self._interrupt_rest()
            self._flush()
            self._end()
            self._phase = "stopped"
            log.info("stopped", extra={"instance_id": self.instance_id})

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def health(self) -> Health:
        """The health of the worker, from memory: cheap, and correct while the database is unreachable."""
        if self._phase == "new":
            return Health(
                "new", False, self.worker_id, "", self._slots, *(0,) * 4, False, None, None, *(0,) * 6
            )
        state, counters = self._state, self._state.counters
        ready = sum(len(pool.ready) for pool in self._pools)
        active = max(0, state.active())
        claim_age, renewal_age = _age(state.last_claim), _age(state.last_renewal)
        room = active < self._slots
        late = self._ttl_ms / 1000
        return Health(
            state=self._phase,
            healthy=self._phase == "running"
            and not self._crash
            and (not room or (claim_age is not None and claim_age < max(10.0, 5 * self._poll_s)))
            and renewal_age is not None
            and renewal_age < late,
            worker_id=self.worker_id,
            instance_id=self.instance_id,
            slots=self._slots,
            running=max(0, active - ready),
            ready=ready,
            unacknowledged=max(0, len(state.runs) - active),
            leases=len(state.runs),
            listening=self._listener is not None and self._listener.listening,
            last_claim_age_s=claim_age,
            last_renewal_age_s=renewal_age,
            claimed=counters.claimed,
            completed=counters.completed,
            failed=counters.failed,
            paused=counters.paused,
            released=counters.released,
            lost=counters.lost,
        )

    def _check_database(self, identity: Mapping[str, object]) -> set[str]:
        """The capabilities of the database. A claim with limit 0 raises now what would reject every claim."""
        supported = {row.capability for row in self._engine.capabilities() if row.supported}
        probe = Link(self._dsn, "probe", prepare=False)
        try:
            for lane in self._lanes.weights:
                probe.call(CLAIM, {**identity, "lane": lane, "limit": 0})
        finally:
            probe.drop()
        return supported

    # --- parts --------------------------------------------------------------------------------------------------------

    def _dispatch(self, runs: list[Run]) -> None:
        tasks = self.app.tasks
        for run in runs:
            run.task = tasks.get(run.kind)
        for observer in self._observers:
            for run in runs:
                try:
                    observer.claimed(run)
                except Exception:
                    log.exception("an observer failed")
        if self._slot_limit is None:
            self._assign(runs)
        else:
            self._slot_limit.put(runs)

    def _assign(self, runs: list[Run]) -> None:
        plain: list[Run] = []
        coroutines: list[Run] = []
        for run in runs:
            (coroutines if run.task is not None and run.task.signature.is_async else plain).append(run)
        if plain:
            self._threads.put(plain)
        if coroutines:
            self._loop.put(coroutines)

    def _observe(self, run: Run) -> None:
        for observer in self._observers:
            try:
                observer.finished(run)
            except Exception:
                log.exception("an observer failed")

    def _due(self, lane: str, seconds: float) -> None:
        self._lanes.due(lane, seconds)
        self._state.room.set()

    def _notify_lane(self, lane: str) -> None:
        self._lanes.notify(lane)
        self._state.room.set()

    def _notify_all_lanes(self) -> None:
        self._lanes.notify_all()
        self._state.room.set()

    def _release_run(self, run: Run) -> None:
        if not run.outcome:
            run.outcome = RELEASE
            self._state.finish(run)

    def _release_stuck(self) -> None:
        """Releases work that was claimed ahead and cannot start because all slots run long tasks."""
        limit = monotonic() - MAX_READY_S
        for pool in self._pools:
            try:
                stuck = pool.ready[0].claimed_at < limit
            except IndexError:
                continue
            if stuck:
                self._state.stop_claiming_ahead()
                for run in pool.drain():
                    self._release_run(run)

    def _interrupt_rest(self) -> None:
        """Interrupts running tasks; releases those that do not stop."""
        rest = [run for run in list(self._state.runs.values()) if not run.outcome and not run.paused]
        if not rest:
            return
        for run in rest:
            run.lose("worker_stopping")
        until = monotonic() + (0.2 if self._stop_now.is_set() else 1.0)
        while monotonic() < until and any(not run.outcome for run in rest):
            threading.Event().wait(0.01)
        for run in rest:
            if not run.outcome:
                log.warning("%s did not stop: released", run.kind, extra=fields(run))
                self._release_run(run)

    def _flush(self) -> None:
        until = monotonic() + (2.0 if self._stop_now.is_set() else 10.0)
        while self._state.runs and monotonic() < until:
            threading.Event().wait(0.005)
        self._state.stopping.set()
        self._state.work_done.set()
        self._background["report"].join(5)

    def _end(self) -> None:
        self._watch.shorten_timeout(1.0 if self._stop_now.is_set() else 5.0)
        for part in (self._listener, self._ticker):
            if part is not None:
                part.stopped.set()
        self._renewer.stop()
        self._background["renew"].join(5)
        with contextlib.suppress(psycopg.Error, EngineError):
            self._links["renew"].call(
                MARK_STOPPED, {"instance_id": self.instance_id, "namespace": self.app.namespace}
            )
        self._watch.stopped.set()
        self._threads.close()
        self._loop.close()
        for name, thread in self._background.items():
            if name != "listen":
                thread.join(2)
        for link in self._links.values():
            link.drop()
        self._engine.close()
        self._transactions.close()

    def _spawn(self, name: str, target: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                target()
            except BaseException as error:
                log.exception("%s thread crashed; shutting down", name)
                self._crash = self._crash or f"{name}: {type(error).__name__}: {error}"
                self.shutdown()

        thread = threading.Thread(target=guarded, name=f"pyff-{name}", daemon=True)
        self._background[name] = thread
        thread.start()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        came: queue.SimpleQueue[int] = (
            queue.SimpleQueue()
        )  # SimpleQueue.put is reentrant, so it cannot deadlock in a handler

        def handle(number: int, _: FrameType | None) -> None:
            came.put(number)

        def obey() -> None:
            while number := came.get():
                log.info("signal %s", signal.Signals(number).name)
                self.shutdown()

        threading.Thread(target=obey, name="pyff-signals", daemon=True).start()
        before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            came.put(0)


def _age(moment: float) -> float | None:
    return monotonic() - moment if moment else None


__all__ = ["Worker"]
