"""A server for tests and benchmarks: its own directory, no port, removed with the process that started it."""

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from psycopg.conninfo import make_conninfo

from pyff.postgres import binaries as programs
from pyff.postgres import cluster, places
from pyff.postgres.binaries import Binaries
from pyff.postgres.errors import PgError
from pyff.postgres.postmaster import Reaper

_MEMORY = Path("/dev/shm")  # noqa: S108
_ENOUGH = 1 << 30  # docker grants 64 MB
_FAST: dict[str, str | int | float | bool] = {
    "fsync": False,
    "synchronous_commit": False,
    "full_page_writes": False,
    "max_connections": 200,
    "max_wal_size": "512MB",
}


class TemporaryServer:
    """Runs until `close`, the end of the `with`, or the end of this process, even by SIGKILL."""

    def __init__(self, directory: Path, binaries: Binaries, reaper: Reaper, dsn: str) -> None:
        self.dsn = dsn
        self.bindir = binaries.bindir
        self.version = binaries.version
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "log"
        self._reaper: Reaper | None = reaper

    def close(self) -> None:
        if self._reaper:
            self._reaper.release()
            self._reaper = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def temporary(*, where: Path | None = None, **settings: str | int | float | bool) -> TemporaryServer:
    """Starts a throw-away server. `settings` are PostgreSQL's; durability is off by default.

    The data is in memory if there is room, except with fsync on, which has no effect there.
    """
    binaries = programs.find()
    chosen = {**_FAST, **settings}
    durable = chosen["fsync"] in (True, "on", 1, "1", "true", "yes")
    directory = _directory(where or _parent(durable=durable), binaries)
    reaper = Reaper(directory=str(directory))  # first: it removes everything from here on
    try:
        data = directory / "data"
        cluster.initialize(data, binaries, sync=durable)
        chosen |= {
            "listen_addresses": "",
            "port": places.SOCKET_PORT,
            "unix_socket_directories": str(directory),
            **settings,
        }
        running = cluster.start(data, directory / "log", binaries, chosen)
    except BaseException:
        reaper.release()
        raise
    dsn = make_conninfo(
        host=str(running.socket_dir), port=running.port, user=cluster.SUPERUSER, dbname="postgres"
    )
    return TemporaryServer(directory, binaries, reaper, dsn)


def _parent(*, durable: bool) -> Path:
    if (
        not durable
        and _MEMORY.is_dir()
        and os.access(_MEMORY, os.W_OK)
        and shutil.disk_usage(_MEMORY).free > _ENOUGH
    ):
        return _MEMORY
    parent = Path(tempfile.gettempdir())
    return parent if places.socket_fits(parent / "pyff-12345678", places.SOCKET_PORT) else Path("/tmp")  # noqa: S108


def _directory(parent: Path, binaries: Binaries) -> Path:
    try:
        directory = Path(tempfile.mkdtemp(prefix="pyff-", dir=parent))
        binaries.account.give(directory)
    except OSError as error:
        raise PgError(f"cannot create a directory in {parent}: {error.strerror}") from error
    return directory
