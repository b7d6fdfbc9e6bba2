"""Hears when work becomes ready, and when an operator interferes; and holds the lock by which others see that this
worker lives (peers.py). Nothing depends on it: everybody polls too, and leases run out."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import Connection

from pyff.worker.link import Patience
from pyff.worker.statements import HOLD

log = logging.getLogger("pyff.worker")

LANE = "ff_lane"
OPERATOR = "ff_event_operator"


class Listener:
    """`open` may come first: it makes the connection, and tells whether the lock is held."""

    def __init__(
        self,
        dsn: str,
        instance_id: str,
        *,
        on_lane: Callable[[str], None],
        on_operator: Callable[[], None],
        on_gap: Callable[[], None],
        on_loss: Callable[[], None],
    ) -> None:
        self._dsn = dsn
        self._instance_id = instance_id
        self._on_lane = on_lane
        self._on_operator = on_operator
        self._on_gap = on_gap
        self._on_loss = on_loss
        self._patience = Patience()
        self._connection: Connection[Any] | None = None
        self.stopped = threading.Event()
        self.listening = False
        self.holding = False

    def open(self) -> bool:
        try:
            self._connection = self._connect()
        except psycopg.Error:
            return False  # it will be tried again, and told
        return self.holding

    def serve(self) -> None:
        while not self.stopped.is_set():
            try:
                self._listen()
            except psycopg.Error as error:
                if self.stopped.is_set():
                    return
                held, self.holding = self.holding, False
                if held:
                    self._on_loss()
                if not self._patience.failures:
                    log.warning("not listening, only polling: %s", str(error).strip())
                self.stopped.wait(self._patience.spend())
            finally:
                self.listening = False

    def _connect(self) -> Connection[Any]:
        connection = Connection.connect(self._dsn, autocommit=True, fallback_application_name="pyff-worker")
        try:
            connection.execute(f"listen {LANE}")
            connection.execute(f"listen {OPERATOR}")
            self._hold(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _listen(self) -> None:
        opened, self._connection = self._connection, None
        with opened or self._connect() as connection:
            self.listening = True
            self._patience.restore()
            self._on_gap()  # what rang before is not heard again
            while not self.stopped.is_set():
                for note in connection.notifies(timeout=1.0):
                    if note.channel == LANE:
                        self._on_lane(note.payload)
                    else:
                        self._on_operator()
                    if self.stopped.is_set():
                        return
                if self.holding:
                    connection.execute("select")  # notices a server that is gone
                else:
                    self._hold(connection)

    def _hold(self, connection: Connection[Any]) -> None:
        """Not behind a pooler, where the session is not this worker's: it may outlive it, or end before."""
        ((pid,),) = connection.execute("select pg_backend_pid()")
        if pid == connection.info.backend_pid:
            ((self.holding,),) = connection.execute(HOLD, {"instance_id": self._instance_id})
