"""Worker processes that end with the demo, even if it is killed."""

import os
import subprocess
import sys
from types import TracebackType
from typing import Self

from pyff.failure import Failure


class WorkerProcess:
    def __init__(self, dsn: str, namespace: str, name: str) -> None:
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tools.demo.worker", namespace, name],
            env={**os.environ, "PYFF_DSN": dsn},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C goes to the demo, which ends its workers
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def lease(self) -> tuple[int, str]:
        """The attempt and the handle of its next claim."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            said = self._process.stderr.read() if self._process.stderr else ""
            raise Failure(f"{self._name} ended without working", hint=said.strip().rpartition("\n")[2])
        attempt, handle = line.split()
        return int(attempt), handle

    def kill(self) -> None:
        """Sends SIGKILL: the process cannot clean up."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()
