"""The connection that LISTENs for all followers of an engine."""

import asyncio
import os
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, Self

from psycopg import Connection, sql

PAUSE_S = 1.0  # between two attempts to connect
CLOSE_S = 1.0  # how long close() waits for an attempt to connect


class Listener:
    """Wakes the followers of a channel when PostgreSQL notifies it. The connection belongs to a thread, which starts
    with the first follower and ends with the last.

    An optimization only: followers poll too. Each follower is woken once LISTEN succeeds for its channels, because
    earlier notifications, and those during a lost connection, are not repeated.
    """

    def __init__(self, conninfo: str, options: Mapping[str, Any]) -> None:
        self._conninfo = conninfo
        self._options = {**options, "autocommit": True}
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()  # the garbage collector may close a follower anywhere
        self._wakeups: set[BaseWakeup] = set()
        self._thread: threading.Thread | None = None

    def add(self, wakeup: "BaseWakeup") -> None:
        with self._locked():
            if self._closed:
                return
            self._wakeups.add(wakeup)
            if self._thread is None:
                self._changed, self._change = socket.socketpair()
                self._change.setblocking(False)
                thread = threading.Thread(target=self._serve, name="pyff-listener", daemon=True)
                thread.start()
                self._thread = thread  # after start(): a thread that failed to start cannot be joined
            self._notify_thread()

    def remove(self, wakeup: "BaseWakeup") -> None:
        with self._locked():
            self._wakeups.discard(wakeup)
            self._notify_thread()

    def close(self) -> None:
        """Wakes all followers for the last time, and waits until the connection is closed, for CLOSE_S at most."""
        with self._locked():
            self._closed = True
            left, self._wakeups = self._wakeups, set()
            thread = self._thread
            self._notify_thread()
        for wakeup in left:
            wakeup.wake()
        if thread is not None:
            thread.join(CLOSE_S)

    def _locked(self) -> AbstractContextManager[object]:
        if self._pid != os.getpid():  # a fork has neither the thread nor its connection
            self._reset()
        return self._lock

    def _notify_thread(self) -> None:
        """Notifies the thread that the set of followers has changed."""
        if self._thread is not None:
            with suppress(BlockingIOError):  # full: the thread wakes anyway
                self._change.send(b".")

    def _serve(self) -> None:
        while True:
            try:
                with Connection.connect(self._conninfo, **self._options) as connection:
                    self._listen(connection)
            except Exception:  # one follower with an invalid channel name must not stop the others
                self._wait(PAUSE_S)
            with self._lock:
                if not self._wakeups:
                    self._thread = None
                    self._changed.close()
                    self._change.close()
                    return

    def _listen(self, connection: Connection[Any]) -> None:
        connection.add_notify_handler(lambda notify: self._wake({notify.channel}))
        listening: set[str] = set()
        while wanted := self._channels():
            for channel in wanted - listening:
                connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            for channel in listening - wanted:
                connection.execute(sql.SQL("unlisten {}").format(sql.Identifier(channel)))
            self._wake(wanted - listening)
            listening = wanted
            self._wait(None, connection.fileno())
            connection.pgconn.consume_input()
            while notify := connection.pgconn.notifies():
                self._wake({notify.relname.decode()})

    def _wait(self, seconds: float | None, *files: int) -> None:
        """Waits until one of the files can be read, the set of followers has changed, or the time is over."""
        inputs = select.poll()
        for file in (self._changed.fileno(), *files):
            inputs.register(file, select.POLLIN)
        for file, _ in inputs.poll(None if seconds is None else seconds * 1000):
            if file == self._changed.fileno():
                self._changed.recv(4096)

    def _channels(self) -> set[str]:
        return {channel for wakeup in self._wakeups.copy() for channel in wakeup.channels}

    def _wake(self, channels: set[str]) -> None:
        for wakeup in self._wakeups.copy():
            if not channels.isdisjoint(wakeup.channels):
                wakeup.wake()


class BaseWakeup(ABC):
    """Wakes one follower. Without a listener it only times out."""

    def __init__(self, listener: Listener | None, channels: Iterable[str]) -> None:
        self._listener = listener
        self.channels = frozenset(channels)

    @property
    def listens(self) -> bool:
        return self._listener is not None

    def __enter__(self) -> Self:
        if self._listener is not None:
            self._listener.add(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._listener is not None:
            self._listener.remove(self)

    @abstractmethod
    def wake(self) -> None:
        """Wakes the follower; called by the thread of the listener."""


class Wakeup(BaseWakeup):
    """For a thread."""

    def __init__(self, listener: Listener | None, channels: Iterable[str]) -> None:
        super().__init__(listener, channels)
        self._woken = threading.Event()

    def wake(self) -> None:
        self._woken.set()

    def wait(self, seconds: float) -> bool:
        """Whether it was woken within that time, or since the last wait."""
        woken = self._woken.wait(seconds)
        if woken:
            self._woken.clear()
        return woken


class AsyncWakeup(BaseWakeup):
    """For a task."""

    def __enter__(self) -> Self:
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        return super().__enter__()

    def wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._woken.set)

    async def wait(self, seconds: float) -> bool:
        """Whether it was woken within that time, or since the last wait."""
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True
