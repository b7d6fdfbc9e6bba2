"""The worker: claims executions, runs their tasks, reports what came of them."""

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
from pyff.worker.gate import Gate
from pyff.worker.health import Health
from pyff.worker.keeper import Keeper, Watch
from pyff.worker.link import Link, conninfo
from pyff.worker.listener import Listener
from pyff.worker.loop import Loop
from pyff.worker.observer import Observer
from pyff.worker.peers import SESSION, Peers
from pyff.worker.state import State
from pyff.worker.statements import CLAIM, GOODBYE
from pyff.worker.threads import Threads
from pyff.worker.ticker import Ticker

log = logging.getLogger("pyff.worker")

CALL_TIMEOUT_S = 30.0
WAITS_S = 1.0
"""So long may work that was claimed ahead wait for a slot."""


class Worker:
    """Runs the tasks of an app.

    `lanes`: names, or names with weights ({"mail": 1, "billing": 3}: three times as often while both have work); by
    default those of the tasks. `slots`: how many tasks run at a time; plain functions in threads, coroutines on one
    event loop. `capabilities`: what executions with `needs` are matched against. `lease_ttl_ms`: after how long others
    take over the work of a machine that is gone, leases are renewed at a third of it; that of a process that died they
    take over after about three seconds.

    `run` blocks until SIGTERM or SIGINT: then it claims nothing more, lets running tasks finish for `drain_s` seconds
    and gives everything else back. A second signal gives back at once. As a context manager, or with `start` and
    `stop`, it works in the background.

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
            raise ValueError("slots: at least one")
        if not 1 <= batch <= 1_000:
            raise ValueError("batch: between 1 and 1000")
        if isinstance(lanes, str):
            raise TypeError("lanes: expected names of lanes, got one text")
        weights = lanes if isinstance(lanes, Mapping) else dict.fromkeys(lanes or app.lanes(), 1.0)
        if not weights or not all(0 < weight < math.inf for weight in weights.values()):
            raise ValueError("lanes: at least one, with weights above zero")
        if not poll_s > 0:
            raise ValueError("poll_s: above zero")
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
        self._asked = threading.Event()
        self._hurry = threading.Event()
        self._stop_lock = threading.Lock()
        self._broken = ""

    # --- life ---------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Works until SIGTERM, SIGINT or `shutdown`. Call it from the main thread to have signals handled.

        Raises: Failure, if a part of the worker died of a mistake; what could be given back was.
        """
        with self._signals():
            self.start()
            self._asked.wait()
            self.stop()
        if self._broken:
            raise Failure(
                f"the worker could not go on: {self._broken}",
                hint="The log has the whole story. Start it again.",
            )

    def shutdown(self) -> None:
        """Asks `run` to end as a signal would: the first call drains, the second one stops at once."""
        if self._asked.is_set():
            self._hurry.set()
        self._asked.set()

    def start(self) -> None:
        """Begins to work in the background. Raises if the database cannot be reached, or is not what it should be."""
        if self._phase != "new":
            raise RuntimeError("a worker starts once; make another one")
        if not self.app.tasks:
            raise Failure("the app has no tasks", hint="Import the modules that register them.")
        kinds = {
            task.signature.is_async for task in self.app.tasks.values()
        }  # one that cannot be called is told now
        self._state = State(self._slots, self._batch)
        # Two pools: a task inside a transaction may make a call, and must not wait for others that do the same.
        self._engine, self._transactions = (
            Engine(
                self._dsn,
                prepare_threshold=5 if self._prepare else None,
                max_size=max(2, min(self._slots, 10)),
            )
            for _ in range(2)
        )
        name = str(uuid4())  # never the host's: a successor is somebody else
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
            supported = self._examine(identity)
            keeping.connect()
        except BaseException:
            self._engine.close()
            keeping.drop()
            raise
        if keeping.holding:
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
        self._pools: list[Threads | Loop | Gate] = [self._threads, self._loop]
        self._gate: Gate | None = None
        if len(kinds) > 1:
            self._gate = Gate(self._slots, self._enter)
            state.left = self._gate.left
            self._pools.insert(0, self._gate)
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
        self._keeper = Keeper(state, self._links["renew"], self._ttl_ms, identity)
        self._watch = Watch(state, list(self._links.values()), CALL_TIMEOUT_S, self._unload)
        self._listener: Listener | None = None
        self._ticker: Ticker | None = None
        self._background: dict[str, threading.Thread] = {}
        self._spawn("watch", self._watch.serve)
        self._spawn("renew", self._keeper.serve)
        self._spawn("report", self._finisher.serve)
        if self._listen_dsn is not None:
            self._listener = Listener(self._listen_dsn, self._rung, self._keeper.poke, self._rung_all)
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
        """Drains, gives back what is left, and ends all threads but those of tasks that do not stop."""
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
                if self._hurry.is_set() or monotonic() > until + 1:
                    self._links["claim"].abort()
            for pool in self._pools:
                for run in pool.drain():
                    self._give_back(run)
            while state.active() > 0 and monotonic() < until and not self._hurry.wait(0.01):
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
        """How it is doing, from its own memory: cheap, and true even while the database does not answer."""
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
            and not self._broken
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

    def _examine(self, identity: Mapping[str, object]) -> set[str]:
        """What the database can do. A claim of nothing says now what every claim would be refused for."""
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
        if self._gate is None:
            self._enter(runs)
        else:
            self._gate.put(runs)

    def _enter(self, runs: list[Run]) -> None:
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

    def _rung(self, lane: str) -> None:
        self._lanes.ring(lane)
        self._state.room.set()

    def _rung_all(self) -> None:
        self._lanes.ring_all()
        self._state.room.set()

    def _give_back(self, run: Run) -> None:
        if not run.outcome:
            run.outcome = RELEASE
            self._state.finish(run)

    def _unload(self) -> None:
        """Work that was claimed ahead and cannot begin, since all slots are at something long, is for others."""
        limit = monotonic() - WAITS_S
        for pool in self._pools:
            try:
                stuck = pool.ready[0].claimed_at < limit
            except IndexError:
                continue
            if stuck:
                self._state.slow_down()
                for run in pool.drain():
                    self._give_back(run)

    def _interrupt_rest(self) -> None:
        """Tasks that are still running are told to stop; those that do not are given back under their feet."""
        rest = [run for run in list(self._state.runs.values()) if not run.outcome and not run.paused]
        if not rest:
            return
        for run in rest:
            run.lose("worker_stopping")
        until = monotonic() + (0.2 if self._hurry.is_set() else 1.0)
        while monotonic() < until and any(not run.outcome for run in rest):
            threading.Event().wait(0.01)
        for run in rest:
            if not run.outcome:
                log.warning("%s did not stop: given back", run.kind, extra=fields(run))
                self._give_back(run)

    def _flush(self) -> None:
        until = monotonic() + (2.0 if self._hurry.is_set() else 10.0)
        while self._state.runs and monotonic() < until:
            threading.Event().wait(0.005)
        self._state.stopping.set()
        self._state.work_done.set()
        self._background["report"].join(5)

    def _end(self) -> None:
        self._watch.hurry(1.0 if self._hurry.is_set() else 5.0)
        for part in (self._listener, self._ticker):
            if part is not None:
                part.stopped.set()
        self._keeper.stop()
        self._background["renew"].join(5)
        with contextlib.suppress(psycopg.Error, EngineError):
            self._links["renew"].call(
                GOODBYE, {"instance_id": self.instance_id, "namespace": self.app.namespace}
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
                log.exception("the thread that has to %s has ended: stopping", name)
                self._broken = self._broken or f"{name}: {type(error).__name__}: {error}"
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
        )  # the one way out of a handler that cannot deadlock

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
