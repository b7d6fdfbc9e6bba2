"""The postmaster process: its pid file, its state, its shutdown.

Run as a script, this file is the reaper: it waits for the end of the process that started it, for whatever reason,
then stops the server and removes its files. It therefore uses only the standard library.
"""

import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

UNFINISHED = ".new-"  # between the name of a data directory and a random word while initdb works on it
FAST = signal.SIGINT  # disconnects the clients, then writes a checkpoint
IMMEDIATE = signal.SIGQUIT  # leaves the rest to crash recovery


@dataclass(frozen=True)
class PidFile:
    pid: int
    port: int
    socket_dir: Path
    listens: str  # empty: no TCP
    state: str  # starting, ready, stopping


def read_pid_file(data: Path) -> PidFile | None:
    """The data directory's postmaster.pid, or None if it is missing or incomplete."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        return PidFile(int(lines[0]), int(lines[3]), Path(lines[4]), lines[5], lines[7].strip())
    except (OSError, ValueError, IndexError):
        return None


def running(data: Path) -> PidFile | None:
    """The server on the data directory: it is running if its socket accepts, since pids are reused."""
    pid_file = read_pid_file(data)
    if pid_file is None or pid_file.state == "stopping":
        return None
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(5)
        try:
            probe.connect(str(pid_file.socket_dir / f".s.PGSQL.{pid_file.port}"))
        except OSError:
            return None
    return pid_file


def processes(data: Path) -> list[int]:
    """initdb, pg_ctl and postmaster on this data directory. The postmaster's children have other titles."""
    argument = re.compile(rf"\0-D\0{re.escape(str(data))}({re.escape(UNFINISHED)}[^\0]*)?\0")
    return [pid for pid, arguments in _arguments() if argument.search(arguments)]


def _arguments() -> Iterator[tuple[int, str]]:
    """Every visible process, with its arguments, each terminated by NUL."""
    proc = Path("/proc")
    if not (proc / "self" / "cmdline").exists():
        yield from _arguments_by_ps()
        return
    for entry in proc.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                yield int(entry.name), os.fsdecode((entry / "cmdline").read_bytes())


def _arguments_by_ps() -> Iterator[tuple[int, str]]:
    command = ["ps", "-axww", "-o", "pid=,command="]
    listing = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True)
    for line in listing.stdout.splitlines():
        pid, _, arguments = line.strip().partition(" ")
        # Arguments may contain spaces; the searched ones are options, so each ends where the next one begins.
        yield int(pid), re.sub(r" (?=-)|(?<= -D) ", "\0", arguments) + "\0"


def end_orphans(data: Path) -> None:
    """Ends the children of a killed postmaster: idle ones end by themselves, a busy one does not."""
    with suppress(OSError):
        data = data.resolve(strict=True)
    for pid, arguments in _arguments():
        with suppress(OSError):  # no /proc, or the process has ended or belongs to another user
            if arguments.startswith("postgres: ") and Path(f"/proc/{pid}/cwd").readlink() == data:
                os.kill(pid, signal.SIGQUIT)


def stop(data: Path, how: signal.Signals, timeout: float = 60) -> bool:
    """Stops all servers on the data directory and waits for their end. False if none was running."""
    pid_file = read_pid_file(data)
    sent = set[int]()
    deadline = time.monotonic() + timeout
    while left := processes(data):
        for pid in left:
            if pid not in sent:
                sent.add(pid)
                with suppress(ProcessLookupError):
                    os.kill(pid, how)
        if time.monotonic() > deadline:
            raise TimeoutError(f"the server on {data} (pid {left[0]}) did not stop in {timeout:.0f} s")
        time.sleep(0.02)
    if pid_file:
        with suppress(OSError):
            pid_file.socket_dir.rmdir()  # removed only if empty
    return bool(sent)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """An exclusive lock; the kernel releases it when the process ends."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# --- the reaper ---------------------------------------------------------------------------------------------


class Reaper:
    """The write end of the pipe to the reaper, which acts once this end is closed."""

    def __init__(self, **job: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, json.dumps({**job, "parent": os.getpid()})],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl-C at the terminal does not end it
            cwd="/",
        )

    def release(self) -> None:
        """Lets the reaper act now, and waits for it."""
        self._process.communicate()


def _await_end(parent: int) -> None:
    while not select.select([0], [], [], 1)[0]:
        if os.getppid() != parent:  # a forked child may hold the pipe open after the parent's death
            return


def _reap_temporary(job: dict[str, str]) -> None:
    """Ends every process on a temporary directory, removes it, and checks again."""
    directory = Path(job["directory"])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(TimeoutError):
            # No immediate SIGKILL, and no removal before the end: both would leave shared memory behind.
            stop(directory / "data", IMMEDIATE, timeout=20)
        for pid in processes(directory / "data"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists() and not processes(directory / "data"):
            return
        time.sleep(0.05)


def _reap_kept(job: dict[str, str]) -> None:
    """Stops the server unless `keep` exists, or another process uses it (see kept.py)."""
    home = Path(job["home"])
    deadline = time.monotonic() + 1  # a dying parent may lose its lock a moment after its end of the pipe
    while time.monotonic() < deadline:
        with locked(home / "lock"), (home / "users").open("a") as users:
            if (home / "keep").exists():
                return
            with suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                stop(Path(job["data"]), FAST)
                return
        time.sleep(0.05)


def _main() -> None:
    job = json.loads(sys.argv[1])
    _await_end(job["parent"])
    _reap_temporary(job) if "directory" in job else _reap_kept(job)


if __name__ == "__main__":
    _main()
