"""Runs ff_tick repeatedly: one connection, a pause with jitter between calls, a reconnect after a lost connection."""

import queue
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from pyff import Engine
from pyff._generated.results import TickRow
from pyff.errors import RetryExhausted
from pyff.failure import Failure

PATIENCE = (0.5, 30.0)  # seconds before the second attempt to connect, and at most


class Stop:
    """A flag that a signal handler may set: it takes no lock that the interrupted code could hold."""

    def __init__(self) -> None:
        self._set = False
        self._wakeup: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        self._set = True
        self._wakeup.put(None)

    def is_set(self) -> bool:
        return self._set

    def wait(self, seconds: float) -> None:
        """Waits until the flag is set, or for `seconds`."""
        if not self._set:
            with suppress(queue.Empty):
                self._wakeup.get(timeout=seconds)


@dataclass
class Maintenance:
    """Any number may run concurrently: a step that another process is running is skipped.

    `stop.set()`, also from a signal handler, ends it after the current call.
    """

    dsn: str
    only: Sequence[str] | None = None
    limit: int = 200
    max_ms: int = 1000
    every_s: float = 0.75
    say: Callable[[str], None] = lambda _: None
    stop: Stop = field(default_factory=Stop)

    def once(self) -> Iterator[list[TickRow]]:
        """The rows of every call, until no more is due."""
        with self._connect() as conn, Engine(conn, prepare_threshold=None) as engine:
            yield from self._calls(engine)

    def forever(self) -> Iterator[list[TickRow]]:
        """The rows of every call, until stopped. Reconnects after a lost connection."""
        pause, longest = PATIENCE
        while not self.stop.is_set():
            try:
                with self._connect() as conn, Engine(conn, prepare_threshold=None) as engine:
                    pause, _ = PATIENCE
                    while not self.stop.is_set():
                        try:
                            yield from self._calls(engine)
                        except RetryExhausted as error:
                            self.say(f"concurrent changes, trying again: {_first_line(error)}")
                        self._wait(self.every_s)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self.say(f"connection to the database lost, trying again: {_first_line(error)}")
                self._wait(pause)
                pause = min(2 * pause, longest)

    def _calls(self, engine: Engine) -> Iterator[list[TickRow]]:
        more = True
        while more and not self.stop.is_set():
            rows = engine.tick(limit=self.limit, only=self.only, max_ms=self.max_ms)
            yield rows
            more = any(row.more for row in rows)

    def _connect(self) -> psycopg.Connection[object]:
        try:
            # No prepared statements: one call a second gains nothing from them, and there may be a pooler.
            return psycopg.connect(
                self.dsn, autocommit=True, prepare_threshold=None, fallback_application_name="pyff maintain"
            )
        except psycopg.ProgrammingError as error:
            raise Failure(
                f"cannot connect to the database: {_first_line(error)}", hint="check --dsn or PYFF_DSN"
            ) from None

    def _wait(self, seconds: float) -> None:
        """Waits for `seconds` +-50 %, so that several processes do not call at the same moment."""
        self.stop.wait(seconds * random.uniform(0.5, 1.5))  # noqa: S311


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["no reason given"])[0]
