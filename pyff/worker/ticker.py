"""Maintenance in passing: a worker looks after its peers, and one that has nothing to do runs ff_tick, which does what
is due for everybody."""

import logging
import threading
from collections.abc import Callable
from time import monotonic

import psycopg

from pyff.engine_error import EngineError
from pyff.worker.link import Link, Patience
from pyff.worker.peers import Peers
from pyff.worker.statements import TICK

log = logging.getLogger("pyff.worker")


class Chore:
    """What has to be done now and then, and may fail: that is told once, and tried again after pauses that grow."""

    def __init__(self, complaint: str) -> None:
        self._complaint = complaint
        self._at = 0.0
        self.patience = Patience(1.0, 60.0)

    def do(self, work: Callable[[], None]) -> None:
        if monotonic() < self._at:
            return
        try:
            work()
        except (psycopg.Error, EngineError) as error:
            if not self.patience.failures:
                log.warning("%s: %s", self._complaint, str(error).strip())
            self._at = monotonic() + self.patience.spend()
        else:
            self.patience.restore()


class Ticker:
    """ff_tick once a second while the worker is idle, every ten seconds while it is not."""

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
        self._looking = Chore("cannot look after other workers")
        self._ticking = Chore("maintenance")
        self._ticked = 0.0
        self.stopped = threading.Event()

    def serve(self) -> None:
        while not self.stopped.wait(self._every_s):
            self._looking.do(self._peers.look)
            if self._idle() or monotonic() - self._ticked >= self._busy_s:
                self._ticking.do(self._tick)

    def _tick(self) -> None:
        rows = self._link.call(TICK, {"max_ms": 500})
        self._ticked = monotonic()
        for step, processed, errors, _ in rows:
            if errors:
                log.error("maintenance: %s failed for %s rows", step, errors, extra={"step": step})
            elif processed:
                log.debug("maintenance: %s did %s rows", step, processed, extra={"step": step})
