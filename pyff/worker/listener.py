"""Receives notifications of ready work and of operator actions. An optimization only: the worker polls too."""

import logging
import threading
from collections.abc import Callable

import psycopg
from psycopg import Connection

from pyff.worker.link import RetryPauses

log = logging.getLogger("pyff.worker")

LANE = "ff_lane"
OPERATOR = "ff_event_operator"


class Listener:
    def __init__(
        self,
        dsn: str,
        on_lane: Callable[[str], None],
        on_operator: Callable[[], None],
        on_gap: Callable[[], None],
    ) -> None:
        self._dsn = dsn
        self._on_lane = on_lane
        self._on_operator = on_operator
        self._on_gap = on_gap
        self._pauses = RetryPauses()
        self.stopped = threading.Event()
        self.listening = False

    def serve(self) -> None:
        while not self.stopped.is_set():
            try:
                self._listen()
            except psycopg.Error as error:
                if self.stopped.is_set():
                    return
                if not self._pauses.failures:
                    log.warning("not listening, only polling: %s", str(error).strip())
                self.stopped.wait(self._pauses.next())
            finally:
                self.listening = False

    def _listen(self) -> None:
        with Connection.connect(
            self._dsn, autocommit=True, fallback_application_name="pyff-worker"
        ) as connection:
            connection.execute(f"listen {LANE}")
            connection.execute(f"listen {OPERATOR}")
            self.listening = True
            self._pauses.reset()
            self._on_gap()  # earlier notifications are not repeated
            while not self.stopped.is_set():
                for note in connection.notifies(timeout=1.0):
                    if note.channel == LANE:
                        self._on_lane(note.payload)
                    else:
                        self._on_operator()
                    if self.stopped.is_set():
                        return
                connection.execute("select")  # fails if the server is gone
