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
        self._patience = Patience(1.0, 60.0)
        self._tick_at = 0.0
        self._look_at = 0.0
        self._look_patience = Patience(1.0, 60.0)
        self.stopped = threading.Event()

    def serve(self) -> None:
        last = 0.0
        while not self.stopped.wait(self._every_s):
            self._look()
            if monotonic() < self._tick_at or (not self._idle() and monotonic() - last < self._busy_s):
                continue
            try:
                rows = self._link.call(TICK, {"max_ms": 500})
            except (psycopg.Error, EngineError) as error:
                if not self._patience.failures:
                    log.warning("maintenance: %s", str(error).strip())
                self._tick_at = monotonic() + self._patience.spend()
                continue
            self._patience.restore()
            last = monotonic()
            for step, processed, errors, _ in rows:
                if errors:
                    log.error("maintenance: %s failed for %s rows", step, errors, extra={"step": step})
                elif processed:
                    log.debug("maintenance: %s did %s rows", step, processed, extra={"step": step})

    def _look(self) -> None:
        """Whatever comes of it, maintenance goes on."""
        if monotonic() < self._look_at:
            return
        try:
            self._peers.look()
        except (psycopg.Error, EngineError) as error:
            if not self._look_patience.failures:
                log.warning("cannot look after other workers: %s", str(error).strip())
            self._look_at = monotonic() + self._look_patience.spend()
        else:
            self._look_patience.restore()
