"""The protocol with drivers: a JSON object per line in both directions. drivers/wire.py is the other end."""

import contextlib
import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

START_S = 60.0


class DriverError(Exception):
    """A driver answered with an error, ended, or did not answer in time."""


class Driver:
    """A process that speaks the protocol."""

    def __init__(self, command: Sequence[str], *, log: Path | None = None) -> None:
        self._log = log.open("ab") if log else None
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log or subprocess.DEVNULL
        )
        self._lines: queue.SimpleQueue[tuple[float, str] | None] = queue.SimpleQueue()
        self.read_at = 0.0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self) -> None:
        assert self.process.stdout is not None  # noqa: S101
        for line in self.process.stdout:
            self._lines.put((time.time(), line.decode()))
        self._lines.put(None)

    def next(self, timeout: float) -> dict[str, Any]:
        try:
            came = self._lines.get(timeout=max(timeout, 0))
        except queue.Empty:
            raise DriverError(f"no answer within {timeout:.0f} s") from None
        if came is None:
            self._lines.put(None)
            raise DriverError(f"ended with status {self.process.wait()}")
        self.read_at, line = came
        try:
            message = json.loads(line)
        except ValueError:
            raise DriverError(f"said {line.strip()!r}") from None
        if "error" in message:
            raise DriverError(message["error"])
        return dict(message)

    def stop(self, patience: float = 5.0) -> None:
        """SIGTERM, then SIGKILL if the process does not end in time."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.kill()
        if self.process.stdin:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        self._reader.join(patience)
        if self.process.stdout:
            self.process.stdout.close()
        if self._log:
            self._log.close()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Client(Driver):
    """The side that enqueues, signals and cancels."""

    def ask(self, op: str, *, timeout: float = 120.0, **arguments: object) -> dict[str, Any]:
        assert self.process.stdin is not None  # noqa: S101
        try:
            self.process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise DriverError(f"ended with status {self.process.wait()}") from None
        return self.next(timeout)


class Worker(Driver):
    """A worker process, and what it has reported."""

    def __init__(self, command: Sequence[str], *, log: Path | None = None) -> None:
        super().__init__(command, log=log)
        self.done = 0
        self.ran: list[int] = []
        self.marks: dict[int, float] = {}
        self.waiting: dict[int, str | None] = {}
        self.first: tuple[float, int] | None = None  # when it first reported finished tasks, and how many

    def read(self, timeout: float) -> None:
        """Reads one message, and all others that have arrived."""
        self._take(self.next(timeout))
        while not self._lines.empty():
            self._take(self.next(0))

    def read_rest(self) -> None:
        """Reads the messages that a process sent before it ended."""
        self._reader.join(5)
        while True:
            try:
                self.read(0)
            except DriverError:
                return

    def _take(self, message: dict[str, Any]) -> None:
        if self.first is None and message.keys() & {"done", "ran", "mark"}:
            self.first = (self.read_at, message.get("done", 1))
        self.done = message.get("done", self.done)
        if "ran" in message:
            self.ran.append(message["ran"])
        if "mark" in message:
            self.marks.setdefault(message["mark"], message["t"])
        if "waiting" in message:
            self.waiting.setdefault(message["waiting"], message.get("token"))

    def until(self, reached: Callable[[], bool], seconds: float) -> bool:
        return until([self], reached, seconds)


def until(workers: Sequence[Worker], reached: Callable[[], bool], seconds: float) -> bool:
    """Reads until a condition holds; False on a timeout."""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            return False
        for worker in workers:
            with contextlib.suppress(_SilenceError):
                _read(worker, 0.005 / len(workers))
    return True


class _SilenceError(Exception):
    pass


def _read(worker: Worker, timeout: float) -> None:
    if worker._lines.empty():
        time.sleep(timeout)
        if worker._lines.empty():
            if worker.process.poll() is not None and not worker._reader.is_alive():
                raise DriverError(f"a worker ended with status {worker.process.returncode}")
            raise _SilenceError
    worker.read(1.0)


@contextlib.contextmanager
def working(commands: Sequence[Sequence[str]], *, log: Path | None = None) -> Iterator[list[Worker]]:
    """Worker processes, ready to work; stopped at the end."""
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(Worker(command, log=log)) for command in commands]
        for worker in workers:
            worker.read(START_S)
        yield workers
