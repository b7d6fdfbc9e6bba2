"""Looking at processes and waiting for them, without sleeping longer than needed."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from pyff.postgres import find

Run = Callable[..., subprocess.Popen[str]]


def until(condition: Callable[[], object], seconds: float = 90, explain: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds} s: {explain()}"
        time.sleep(0.02)


def mentions(text: object) -> list[str]:
    """The command lines of all other processes that mention the text: servers, tools, reapers."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(text) in command and int(entry.name) != os.getpid():
            found.append(command)
    return found


def kill(pid: int | None) -> None:
    assert pid
    os.kill(pid, signal.SIGKILL)


def one(conninfo: str, statement: str) -> object:
    """The first value of the first row."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        cursor = connection.execute(statement)  # type: ignore[call-overload]
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def ask_psql(conninfo: str, statement: str) -> str:
    """The system's psql if there is one, else the one that came with the server."""
    binaries = find()
    for psql in (shutil.which("psql"), binaries.bindir / "psql"):
        with suppress(OSError):
            command = [str(psql), conninfo, "-Atc", statement]
            done = subprocess.run(
                command, env={**os.environ, **binaries.env}, capture_output=True, text=True, check=False
            )
            if "shared libraries" not in done.stderr:
                return (done.stdout + done.stderr).strip()
    pytest.skip("there is no psql, and the embedded one does not run here")
