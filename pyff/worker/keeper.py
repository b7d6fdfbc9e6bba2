"""Keeps leases alive, from a thread and a connection of its own; and stops tasks whose lease could not be kept."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

import psycopg
from psycopg.errors import LockNotAvailable

from pyff.app.run import Run
from pyff.engine_error import EngineError
from pyff.worker.execute import fields
from pyff.worker.link import Link, Patience
from pyff.worker.state import State
from pyff.worker.statements import HEARTBEAT, REGISTER, RENEW

log = logging.getLogger("pyff.worker")

MOST = 1_000
MOST_PATIENCE_MS = 1_000
"""So long, or a twelfth of the lease, a renewal waits for whoever has changed an execution and not committed yet."""
HEARTBEAT_S = 10.0
LIVENESS_MS = 30_000
ATTEND_S = 0.25
"""A session that was ended is made again so soon that others do not take this worker for dead (peers.py)."""


class Keeper:
    """Renews everything that has used up a third of its time, in one call. Runs until the last task has ended."""

    def __init__(self, state: State, link: Link, ttl_ms: int, registration: Mapping[str, object]) -> None:
        self._state = state
        self._link = link
        self._ttl_ms = ttl_ms
        self._registration = registration
        self._poked = threading.Event()
        self._patience = Patience(0.05, max(0.05, min(1.0, ttl_ms / 10_000)))
        self._beat_at = 0.0
        self._patience_ms = max(10, min(MOST_PATIENCE_MS, ttl_ms // 12))
        self._held: set[str] = set()
        self.stopped = threading.Event()

    def poke(self) -> None:
        """Looks at all leases now: an operator did something."""
        self._poked.set()

    def stop(self) -> None:
        self.stopped.set()
        self._poked.set()

    def serve(self) -> None:
        pause = self._ttl_ms / 6_000
        everything = False
        sessions = self._link.sessions
        while not self.stopped.is_set():
            everything = everything or self._poked.is_set()
            self._poked.clear()
            try:
                self._link.attend()
                if self._link.sessions != sessions:
                    # Others may have taken this worker for dead meanwhile.
                    everything = True
                    self._beat_at = 0.0
                self._renew(everything)
                self._beat()
            except (psycopg.Error, EngineError) as error:
                if not self._patience.failures:
                    log.warning("cannot renew leases: %s", str(error).strip())
                self.stopped.wait(self._patience.spend())
                continue
            everything = False
            sessions = self._link.sessions
            if self._patience.failures:
                log.info("renewing leases again")
                self._patience.restore()
            self._poked.wait(min(pause, ATTEND_S))

    def _renew(self, everything: bool) -> None:
        """Each claim and each renewal counts from the moment it was sent."""
        due = monotonic() + self._ttl_ms / 1500  # less than two thirds left
        runs = [
            run
            for run in list(self._state.runs.values())
            if run.lost is None and not run.paused and (everything or run.deadline <= due)
        ]
        held = [run for run in runs if run.handle in self._held]
        if held:
            runs = [run for run in runs if run.handle not in self._held]
        for start in range(0, len(runs), MOST):
            self._renew_apart(runs[start : start + MOST])
        for run in held:
            self._held.discard(run.handle)
            self._renew_apart([run])
        self._state.last_renewal = monotonic()

    def _renew_apart(self, runs: Sequence[Run]) -> None:
        """In one call, unless somebody holds one of them: that one is not renewed, the others are."""
        try:
            self._renew_some(runs)
        except LockNotAvailable:
            if len(runs) == 1:
                log.warning("%s is held by somebody: not renewed", runs[0].kind, extra=fields(runs[0]))
                self._held.add(runs[0].handle)
                return
            for run in runs:
                self._renew_apart([run])

    def _renew_some(self, runs: Sequence[Run]) -> None:
        sent = monotonic()
        rows = self._link.call(
            RENEW,
            {
                "handles": [run.handle for run in runs],
                "ttl_ms": self._ttl_ms,
                "patience_ms": self._patience_ms,
            },
        )
        for ordinal, left_ms, kind in rows:
            run = runs[ordinal - 1]
            if kind is None:
                run.deadline = sent + left_ms / 1000
                self._state.counters.renewed += 1
            elif not (run.outcome or run.paused or run.pausing):
                log.warning(
                    "the lease of %s is gone: %s", run.kind, kind, extra={**fields(run), "reason": kind}
                )
                run.lose(kind)

    def _beat(self) -> None:
        if monotonic() < self._beat_at:
            return
        ((outcome,),) = self._link.call(HEARTBEAT, self._registration)
        if outcome != "refreshed":
            self._link.call(REGISTER, {**self._registration, "liveness_ms": LIVENESS_MS})
        self._beat_at = monotonic() + HEARTBEAT_S


class Watch:
    """Never talks to anybody, so nothing can hold it up. It ends what has gone on for too long: tasks behind the end of
    their lease, and calls that no longer get an answer."""

    def __init__(
        self, state: State, links: Sequence[Link], call_timeout_s: float, unload: Callable[[], None]
    ) -> None:
        self._unload = unload
        self._state = state
        self._links = links
        self._call_timeout_s = call_timeout_s
        self.stopped = threading.Event()

    def hurry(self, call_timeout_s: float) -> None:
        """The worker ends: from here on nobody waits for an answer any longer than that."""
        self._call_timeout_s = min(self._call_timeout_s, call_timeout_s)

    def serve(self) -> None:
        pause = 0.1
        while not self.stopped.wait(pause):
            moment = monotonic()
            nearest = moment + 0.5
            for run in list(self._state.runs.values()):
                if run.lost is not None or run.outcome or run.paused:
                    continue
                if run.deadline <= moment:
                    log.warning("%s outlived its lease", run.kind, extra=fields(run))
                    run.lose("lease_expired")
                else:
                    nearest = min(nearest, run.deadline)
            for link in self._links:
                if link.age() > self._call_timeout_s:
                    log.error("no answer for %.0f s on the connection that %ss", link.age(), link.name)
                    link.abort()
            self._unload()
            pause = max(0.005, nearest - moment)
