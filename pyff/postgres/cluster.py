"""One data directory: created by initdb, started by pg_ctl."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyff.postgres import postmaster
from pyff.postgres.binaries import Binaries
from pyff.postgres.errors import PgError, explain
from pyff.postgres.postmaster import PidFile

SUPERUSER = "postgres"
_NO_SUCH_PID = 2**31 - 2  # above every kernel's limit
_ROOM = 64 << 20  # a new cluster has 40 MB

Settings = Mapping[str, str | int | float | bool]


def private_directory(path: Path, binaries: Binaries) -> None:
    """Creates a directory that only the server's account (and root) may enter, or checks an existing one."""
    account = binaries.account
    try:
        try:
            path.mkdir(mode=0o700)
            account.give(path)
        except FileExistsError:
            found = path.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != account.uid or found.st_mode & 0o077:
                raise PgError(
                    f"{path} is not a private directory of the account {account.name!r}",
                    hint="set PYFF_HOME to another directory, or (as root) PYFF_PG_USER to its owner",
                ) from None
    except OSError as error:
        raise PgError(
            f"cannot create {path}: {error.strerror}", hint="set PYFF_HOME to another directory"
        ) from error
    if account.run(["/bin/sh", "-c", 'cd "$1"', "sh", path], {}).returncode != 0:
        raise PgError(
            f"the account {account.name!r}, which the server runs as, cannot enter {path}",
            hint="set PYFF_HOME to a directory whose parents are open to it",
        )


def initialize(data: Path, binaries: Binaries, *, sync: bool = True) -> None:
    """Runs initdb in a temporary directory, then renames it: an existing data directory is complete."""
    failed = f"cannot create a database cluster in {data.parent}"
    if shutil.disk_usage(data.parent).free < _ROOM:
        # initdb would also fail, but leave its shared memory behind.
        raise explain(failed, "No space left on device")
    for leftover in data.parent.glob(f"{data.name}{postmaster.UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{data.name}{postmaster.UNFINISHED}", dir=data.parent))
    binaries.account.give(fresh)
    options = f"--username={SUPERUSER} --encoding=UTF8 --locale=C --no-instructions"
    options += " --auth-local=trust --auth-host=scram-sha-256" + ("" if sync else " --no-sync")
    result = _run(binaries, [binaries.bindir / "initdb", "-D", fresh, *options.split()])
    if result.returncode != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise explain(failed, result.stdout)
    fresh.rename(data)


def check_version(data: Path, binaries: Binaries) -> None:
    written_by = (data / "PG_VERSION").read_text().strip()
    if written_by != str(binaries.major):
        raise PgError(
            f"{data} was written by PostgreSQL {written_by}, not {binaries.version} as in {binaries.bindir}",
            hint="set PYFF_HOME to another directory, or PYFF_PG_BIN to the version that wrote it",
        )


def start(data: Path, log: Path, binaries: Binaries, settings: Settings, *, patience: float = 15) -> PidFile:
    """Starts the server and waits until it accepts connections, also after the previous one was killed."""
    options = " ".join(shlex.quote(f"--{name}={_value(value)}") for name, value in settings.items())
    command: list[str | Path] = [binaries.bindir / "pg_ctl", "start", "-D", data, "-l", log, "-o", options]
    deadline = time.monotonic() + patience
    while True:
        if not postmaster.processes(data):
            _disown(data)
        logged = log.stat().st_size if log.exists() else 0
        result = _run(binaries, [*command, "-w", "-t", "120", "-s"])
        if pid_file := postmaster.running(data):
            return pid_file
        said = result.stdout + _tail(log, logged)
        orphans = "pre-existing shared memory block" in said
        # A stop, or a start whose process was killed, is under way.
        other = re.search(r"lock file .* already exists", said)
        if not (orphans or other) or time.monotonic() > deadline:
            raise explain(f"the server on {data} does not start", said)
        if orphans:
            postmaster.end_orphans(data)
        time.sleep(0.1)


def _tail(log: Path, start: int) -> str:
    try:
        with log.open(errors="replace") as file:
            file.seek(start)
            return file.read()
    except OSError:
        return ""


def _disown(data: Path) -> None:
    """Invalidates a stale postmaster.pid; no server is running or starting.

    PostgreSQL takes any live process with that pid for the server. The file is not removed, because it also names the
    shared memory that children of the previous server may still use. Only the pid is overwritten.
    """
    pid_file = postmaster.read_pid_file(data)
    if pid_file is None:
        with suppress(OSError):
            (data / "postmaster.pid").unlink()  # empty or incomplete: PostgreSQL would reject it
        return
    path = data / "postmaster.pid"
    lines = path.read_text().splitlines(keepends=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "w") as file:
        file.writelines([f"{_NO_SUCH_PID}\n", *lines[1:]])
    for name in (f".s.PGSQL.{pid_file.port}", f".s.PGSQL.{pid_file.port}.lock"):
        with suppress(OSError):
            (pid_file.socket_dir / name).unlink()


def _run(binaries: Binaries, command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    try:
        return binaries.account.run([*command], binaries.env, timeout=180)
    except OSError as error:
        raise PgError(f"cannot run {command[0]} as {binaries.account.name}: {error.strerror}") from error


def _value(value: str | int | float | bool) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
