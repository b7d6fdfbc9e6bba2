"""Renews leases, in a separate thread and connection, and stops tasks whose lease is lost."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

import psycopg
from psycopg.errors import LockNotAvailable

from pyff.app.run import Run
from pyff.engine_error import EngineError
from pyff.worker.execute import fields
from pyff.worker.link import Link, RetryPauses
from pyff.worker.state import State
from pyff.worker.statements import HEARTBEAT, REGISTER, RENEW

log = logging.getLogger("pyff.worker")

MAX_BATCH = 1_000
MAX_LOCK_TIMEOUT_MS = 1_000
"""Lock timeout for renewals: 1 s or lease/12, whichever is smaller."""
HEARTBEAT_S = 10.0
LIVENESS_MS = 30_000
CHECK_SESSION_S = 0.25
"""Interval of the session check: a lost session is replaced before peers declare this worker dead (peers.py)."""


class LeaseRenewer:
    """Renews, in one call, all leases that have used up a third of their time. Runs until the last task has ended."""

    def __init__(self, state: State, link: Link, ttl_ms: int, registration: Mapping[str, object]) -> None:
        self._state = state
        self._link = link
        self._ttl_ms = ttl_ms
        self._registration = registration
        self._wake = threading.Event()
        self._pauses = RetryPauses(0.05, max(0.05, min(1.0, ttl_ms / 10_000)))
        self._beat_at = 0.0
        self._lock_timeout_ms = max(10, min(MAX_LOCK_TIMEOUT_MS, ttl_ms // 12))
        self._locked: set[str] = set()
        self.stopped = threading.Event()

    def renew_now(self) -> None:
        """Renews all leases now, after an operator action."""
        self._wake.set()

    def stop(self) -> None:
        self.stopped.set()
        self._wake.set()

    def serve(self) -> None:
        pause = self._ttl_ms / 6_000
        everything = False
        sessions = self._link.sessions
        while not self.stopped.is_set():
            everything = everything or self._wake.is_set()
            self._wake.clear()
            try:
                self._link.check_session()
                if self._link.sessions != sessions:
                    # Peers may have declared this worker dead meanwhile.
                    everything = True
                    self._beat_at = 0.0
                self._renew(everything)
                self._beat()
            except (psycopg.Error, EngineError) as error:
                if not self._pauses.failures:
                    log.warning("cannot renew leases: %s", str(error).strip())
                self.stopped.wait(self._pauses.next())
                continue
            everything = False
            sessions = self._link.sessions
            if self._pauses.failures:
                log.info("renewing leases again")
                self._pauses.reset()
            self._wake.wait(min(pause, CHECK_SESSION_S))

    def _renew(self, everything: bool) -> None:
        """Lease deadlines count from the moment the claim or renewal was sent."""
        due = monotonic() + self._ttl_ms / 1500  # less than two thirds left
        runs = [
            run
            for run in list(self._state.runs.values())
            if run.lost is None and not run.paused and (everything or run.deadline <= due)
        ]
        locked = [run for run in runs if run.handle in self._locked]
        if locked:
            runs = [run for run in runs if run.handle not in self._locked]
        for start in range(0, len(runs), MAX_BATCH):
            self._renew_apart(runs[start : start + MAX_BATCH])
        for run in locked:
            self._locked.discard(run.handle)
            self._renew_apart([run])
        self._state.last_renewal = monotonic()

    def _renew_apart(self, runs: Sequence[Run]) -> None:
        """Renews in one call; if a row is locked, one by one, without the locked row."""
        try:
            self._renew_some(runs)
        except LockNotAvailable:
            if len(runs) == 1:
                log.warning(
                    "row of %s is locked by another transaction; lease not renewed",
                    runs[0].kind,
                    extra=fields(runs[0]),
                )
                self._locked.add(runs[0].handle)
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
                "lock_timeout_ms": self._lock_timeout_ms,
            },
        )
        for ordinal, left_ms, kind in rows:
            run = runs[ordinal - 1]
            if kind is None:
                run.deadline = sent + left_ms / 1000
                self._state.counters.renewed += 1
            elif not (run.outcome or run.paused or run.pausing):
                log.warning(
                    "the lease of %s is lost: %s", run.kind, kind, extra={**fields(run), "reason": kind}
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
    """Stops tasks whose lease has expired, and aborts calls that time out. It makes no calls, so it cannot block."""

    def __init__(
        self, state: State, links: Sequence[Link], call_timeout_s: float, release_stuck: Callable[[], None]
    ) -> None:
        self._release_stuck = release_stuck
        self._state = state
        self._links = links
        self._call_timeout_s = call_timeout_s
        self.stopped = threading.Event()

    def shorten_timeout(self, call_timeout_s: float) -> None:
        """Lowers the call timeout while the worker stops."""
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
                    log.error("call on the %s connection timed out after %.0f s", link.name, link.age())
                    link.abort()
            self._release_stuck()
            pause = max(0.005, nearest - moment)
