"""The durable server: one per base directory, shared by all processes of its user.

In the base directory, which the server's account cannot write to if the process is root:
    lock      held while the server is started or stopped
    keep      exists: the server outlives the processes that use it
    users     share-locked by every process that started or joined the server with `reap`; without `keep`, the
              server stops with the last of them
    password  for TCP, which is open only if PYFF_PG_PORT is set; the socket's directory is private
    pg-18/    data, log and socket of that major version
"""

import fcntl
import os
import secrets
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pyff.postgres import binaries as programs
from pyff.postgres import cluster, places, postmaster
from pyff.postgres.binaries import Binaries
from pyff.postgres.errors import PgError
from pyff.postgres.postmaster import PidFile, Reaper

DATABASE = "pyff"
_SETTINGS: dict[str, str | int | float | bool] = {"max_connections": 200, "cluster_name": "pyff"}


@dataclass(frozen=True)
class Status:
    running: bool
    external: bool  # named by PYFF_DSN: not started or stopped here
    dsn: str | None = None
    version: str | None = None
    pid: int | None = None
    data: Path | None = None
    log: Path | None = None
    tcp: str | None = None  # conninfo without the password
    password_file: Path | None = None


class Server:
    """A running durable server. If it was started with `reap`, it may stop once this object is deleted."""

    def __init__(self, status: Status, started: bool, home: Path, membership: "_Membership | None") -> None:
        self.dsn = str(status.dsn)
        self.status = status
        self.started = started  # by this call, not before
        self._home = home
        self._membership = membership

    def keep(self) -> None:
        """Lets the server outlive this process."""
        with postmaster.locked(self._home / "lock"):
            (self._home / "keep").touch()
        self.close()

    def close(self) -> None:
        """Stops the server if it was started with `reap`, has no `keep`, and no other process uses it."""
        if self._membership:
            self._membership.end()
            self._membership = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Membership:
    """The use of the server by this process, and the reaper that watches the process."""

    def __init__(self, home: Path, data: Path) -> None:
        self._users = (home / "users").open("a")
        fcntl.flock(self._users, fcntl.LOCK_SH)
        self._reaper = Reaper(home=str(home), data=str(data))

    def end(self) -> None:
        self._users.close()
        self._reaper.release()


def external_dsn() -> str | None:
    """PYFF_DSN: an external server."""
    return os.environ.get("PYFF_DSN") or None


def start(*, reap: bool = False) -> Server:
    """Starts the durable server, or joins it if it is running. Its database `pyff` exists afterwards.

    With `reap`, the server stops when the last process that started or joined it with `reap` has ended, for whatever
    reason, unless `keep` exists. Without `reap`, `keep` is created.
    """
    _only_ours("start")
    home = places.base()
    binaries = programs.find()
    data = home / f"pg-{binaries.major}" / "data"
    keep = home / "keep"
    membership = None
    try:
        with postmaster.locked(home / "lock"):
            found = _running(home)
            if found:
                _check_same(found[0], data)
            else:
                keep.unlink(missing_ok=True)
            if not reap:
                keep.touch()
            elif not keep.exists():
                # Before the launch, so that a kill during it leaves nothing behind.
                membership = _Membership(home, data)
            pid_file = found[1] if found else _launch(home, data, binaries)
            _check_port(pid_file)
            _prepare(home, pid_file)
            return Server(_describe(home, data, pid_file), not found, home, membership)
    except BaseException:
        if membership:  # not under the lock: the reaper takes it
            membership.end()
        raise


def stop() -> bool:
    """Stops the durable server, even if it is in use. False if none was running."""
    _only_ours("stop")
    home = places.base()
    stopped = False
    with postmaster.locked(home / "lock"):
        for data in home.glob("pg-*/data"):
            try:
                stopped |= postmaster.stop(data, postmaster.FAST)
            except PermissionError as error:
                raise PgError(f"the server on {data} belongs to another user") from error
            except TimeoutError as error:
                raise PgError(str(error), hint=f"its log is {data.parent / 'log'}") from error
        (home / "keep").unlink(missing_ok=True)
    return stopped


def status() -> Status:
    if given := external_dsn():
        try:
            with psycopg.connect(given, connect_timeout=5) as connection:
                version = connection.info.parameter_status("server_version")
        except psycopg.Error:
            return Status(running=False, external=True, dsn=given)
        return Status(running=True, external=True, dsn=given, version=version)
    home = places.base()
    found = _running(home)
    return _describe(home, *found) if found else Status(running=False, external=False)


def dsn() -> str:
    """PYFF_DSN, else the conninfo of the durable server, which must be running."""
    now = status()
    if now.dsn is None:
        raise PgError("the server is not running", hint="start it with `pyff server start`, or set PYFF_DSN")
    return now.dsn


def _only_ours(verb: str) -> None:
    if external_dsn():
        raise PgError(
            f"PYFF_DSN names an external server, which pyff does not {verb}",
            hint="unset PYFF_DSN to use the embedded server",
        )


def _running(home: Path) -> tuple[Path, PidFile] | None:
    for data in sorted(home.glob("pg-*/data")):
        if pid_file := postmaster.running(data):
            return data, pid_file
    return None


def _describe(home: Path, data: Path, pid_file: PidFile) -> Status:
    return Status(
        running=True,
        external=False,
        dsn=_conninfo(pid_file, DATABASE),
        version=(data / "PG_VERSION").read_text().strip(),
        pid=pid_file.pid,
        data=data,
        log=data.parent / "log",
        tcp=_conninfo(pid_file, DATABASE, host=pid_file.listens) if pid_file.listens else None,
        password_file=home / "password" if pid_file.listens else None,
    )


def _conninfo(pid_file: PidFile, dbname: str, host: str = "") -> str:
    return make_conninfo(
        host=host or str(pid_file.socket_dir), port=pid_file.port, user=cluster.SUPERUSER, dbname=dbname
    )


def _launch(home: Path, data: Path, binaries: Binaries) -> PidFile:
    cluster.private_directory(data.parent, binaries)
    if not data.exists():
        cluster.initialize(data, binaries)
    cluster.check_version(data, binaries)
    port = _wanted_port()
    settings = {
        **_SETTINGS,
        "listen_addresses": "127.0.0.1" if port else "",
        "port": port or places.SOCKET_PORT,
        "unix_socket_directories": str(_socket_directory(home, data.parent, binaries)),
    }
    return cluster.start(data, data.parent / "log", binaries, settings)


def _wanted_port() -> int | None:
    given = os.environ.get("PYFF_PG_PORT")
    if not given:
        return None
    if not given.isdecimal() or not 0 < int(given) < 65536:
        raise PgError(f"PYFF_PG_PORT={given} is not a port number")
    return int(given)


def _check_same(running: Path, wanted: Path) -> None:
    if running != wanted:
        raise PgError(
            f"a server of another major version is already running on {running}, not on {wanted}",
            hint="stop it with `pyff server stop`, or set PYFF_HOME to another directory",
        )


def _check_port(pid_file: PidFile) -> None:
    port = _wanted_port()
    if port and (port != pid_file.port or not pid_file.listens):
        raise PgError(
            f"the server is running, but not on the port PYFF_PG_PORT={port}",
            hint="stop it with `pyff server stop` and start it again",
        )


def _socket_directory(home: Path, private: Path, binaries: Binaries) -> Path:
    """The server's own directory or, if that path is too long for a socket, a private one in /tmp."""
    if places.socket_fits(private, _wanted_port() or places.SOCKET_PORT):
        return private
    name = f"pyff-{binaries.account.uid}-{zlib.crc32(os.fsencode(home)):08x}"
    directory = Path("/tmp") / name  # noqa: S108 (checked to be private)
    cluster.private_directory(directory, binaries)
    return directory


def _prepare(home: Path, pid_file: PidFile) -> None:
    """Creates the database, and a password for TCP."""
    with _connect(_conninfo(pid_file, "postgres")) as connection:
        if not connection.execute("select 1 from pg_database where datname = %s", [DATABASE]).fetchone():
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))
        if pid_file.listens:
            change = sql.SQL("alter role {} password {}")
            connection.execute(change.format(sql.Identifier(cluster.SUPERUSER), _password(home)))


def _connect(conninfo: str) -> psycopg.Connection[tuple[object, ...]]:
    """Waits for a server that is recovering from a crash."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return psycopg.connect(conninfo, autocommit=True, connect_timeout=10)
        except psycopg.OperationalError as error:
            if "starting up" not in str(error) and "recovery" not in str(error):
                raise PgError(f"the server accepts no connection: {error}") from error
            if time.monotonic() > deadline:
                raise PgError("the server is still recovering from a crash; try again later") from error
            time.sleep(0.1)


def _password(home: Path) -> str:
    file = home / "password"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(24))
    return file.read_text()
