"""Maintenance by workers: each checks its peers, and an idle worker runs ff_tick, which does all due maintenance."""

import logging
import threading
from collections.abc import Callable
from time import monotonic

import psycopg

from pyff.engine_error import EngineError
from pyff.worker.link import Link, RetryPauses
from pyff.worker.peers import Peers
from pyff.worker.statements import TICK

log = logging.getLogger("pyff.worker")


class Job:
    """A recurring job that may fail: the first failure is logged, and retries follow after growing pauses."""

    def __init__(self, failure_message: str) -> None:
        self._failure_message = failure_message
        self._at = 0.0
        self.pauses = RetryPauses(1.0, 60.0)

    def do(self, work: Callable[[], None]) -> None:
        if monotonic() < self._at:
            return
        try:
            work()
        except (psycopg.Error, EngineError) as error:
            if not self.pauses.failures:
                log.warning("%s: %s", self._failure_message, str(error).strip())
            self._at = monotonic() + self.pauses.next()
        else:
            self.pauses.reset()


class Ticker:
    """Runs ff_tick once a second while the worker is idle, every ten seconds while it is not."""

    def __init__(
        self,
        link: Link,
        peers: Peers,
        idle: Callable[[], bool],
        *,
        every_s: float = 1.0,
        busy_s: float = 10.0,
    ) -> None:
        self._link = link
        self._peers = peers
        self._idle = idle
        self._every_s = every_s
        self._busy_s = busy_s
        self._peer_check = Job("cannot check other workers")
        self._tick_job = Job("maintenance")
        self._ticked = 0.0
        self.stopped = threading.Event()

    def serve(self) -> None:
        while not self.stopped.wait(self._every_s):
            self._peer_check.do(self._peers.check)
            if self._idle() or monotonic() - self._ticked >= self._busy_s:
                self._tick_job.do(self._tick)

    def _tick(self) -> None:
        rows = self._link.call(TICK, {"max_ms": 500})
        self._ticked = monotonic()
        for step, processed, errors, _ in rows:
            if errors:
                log.error("maintenance: %s failed for %s rows", step, errors, extra={"step": step})
            elif processed:
                log.debug("maintenance: %s processed %s rows", step, processed, extra={"step": step})
