"""One connection of the worker: used by one thread, reopened after it was lost."""

import contextlib
import os
import selectors
import socket
import threading
import weakref
from collections.abc import Mapping
from time import monotonic, sleep
from typing import Any, LiteralString

import psycopg
from psycopg import Connection, Cursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import InternalError_
from psycopg.rows import tuple_row

from pyff.engine import PAUSES, replaced
from pyff.errors import ConnectionLost, translate
from pyff.worker.statements import TAKE_LOCK

KEEPALIVE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Detects a dead server within a minute. Settings in the DSN take precedence."""


def conninfo(dsn: str) -> str:
    given = conninfo_to_dict(dsn)
    return make_conninfo(dsn, **{name: value for name, value in KEEPALIVE.items() if name not in given})


class Link:
    """`age` is how long the current call has been running; `abort` ends it, from another thread.

    `instance_id`: the worker instance whose lock each session of this link holds, see peers.py.
    """

    def __init__(self, dsn: str, name: str, *, prepare: bool = True, instance_id: str | None = None) -> None:
        self.name = name
        self._instance_id = instance_id
        self._dsn = dsn
        self._prepare = prepare
        self._connection: Connection[Any] | None = None
        self._since: float | None = None
        self._guard = threading.Lock()
        self.calls = 0
        self.sessions = 0
        self.holds_lock = False
        if instance_id is not None:
            _LOCKING.add(self)

    def connect(self) -> Connection[Any]:
        if self._connection is not None and self._connection.closed:
            self.drop()
        if self._connection is None:
            self._since = monotonic()
            try:
                connection = Connection.connect(
                    self._dsn,
                    autocommit=True,
                    prepare_threshold=5 if self._prepare else None,
                    fallback_application_name="pyff-worker",
                )
                self._connection = connection
                self.sessions += 1
                self.holds_lock = self._instance_id is not None and self._take_lock(connection)
            except BaseException:
                self.drop()
                raise
            finally:
                self._since = None
        return self._connection

    def _take_lock(self, connection: Connection[Any]) -> bool:
        """Takes the lock; not behind a pooler, where the life of the session is not that of this worker."""
        ((pid,),) = connection.execute("select pg_backend_pid()", prepare=False)
        if pid != connection.info.backend_pid:
            return False
        connection.execute(TAKE_LOCK, {"instance_id": self._instance_id}, prepare=False)
        return True

    def check_session(self) -> None:
        """Detects between two calls that the session has ended, and reconnects."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.connect(), selectors.EVENT_READ)
            readable = selector.select(0)
        if readable:
            self.call("select", {})

    def close_in_child(self) -> None:
        """In a forked child: closes the socket, which would keep the session open, without freeing its number."""
        connection = self._connection
        if connection is not None and not connection.closed:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, connection.fileno(), inheritable=False)
            os.close(nothing)

    def call(self, sql: LiteralString, arguments: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """The rows of one statement, in its own transaction."""
        for pause in PAUSES:
            try:
                return self._once(sql, arguments)
            except InternalError_ as error:
                if not replaced(error):
                    raise
            sleep(pause)
        return self._once(sql, arguments)

    def _once(self, sql: LiteralString, arguments: Mapping[str, object]) -> list[tuple[Any, ...]]:
        connection = self.connect()
        self._since = monotonic()
        try:
            with Cursor(connection, row_factory=tuple_row) as cursor:
                cursor.execute(sql, arguments, prepare=self._prepare, binary=True)
                rows = cursor.fetchall()
        except psycopg.Error as error:
            if connection.closed:
                self.drop()
            translated = translate(error)
            if translated is error or isinstance(translated, ConnectionLost):
                raise
            raise translated from error
        finally:
            self._since = None
        self.calls += 1
        return rows

    @property
    def connected(self) -> bool:
        return self._connection is not None

    def age(self) -> float:
        since = self._since
        return 0.0 if since is None else monotonic() - since

    def abort(self) -> None:
        """Shuts the socket down. The waiting thread gets an error."""
        with self._guard:
            connection = self._connection
            if connection is None:
                return
            with (
                contextlib.suppress(OSError, psycopg.Error),
                socket.socket(fileno=os.dup(connection.fileno())) as s,
            ):
                s.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        with self._guard:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


_LOCKING: "weakref.WeakSet[Link]" = weakref.WeakSet()
"""The links whose sessions show peers that this process is alive; a forked child must close them."""


def _close_in_child() -> None:
    for link in list(_LOCKING):
        link.close_in_child()
    _LOCKING.clear()  # the child owns these socket numbers from here on


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


class RetryPauses:
    """Growing pauses between retries, reset by a success."""

    def __init__(self, first: float = 0.05, most: float = 0.8) -> None:
        self._first = first
        self._most = most
        self._next = first
        self.failures = 0

    def next(self) -> float:
        self.failures += 1
        pause = self._next
        self._next = min(2 * self._next, self._most)
        return pause

    def reset(self) -> None:
        self._next = self._first
        self.failures = 0
