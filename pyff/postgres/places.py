"""The base directory, and the limit on socket paths."""

import os
import re
import sys
from pathlib import Path

from pyff.postgres.errors import PgError

SOCKET_PORT = 5432  # only in the socket's name, unless PYFF_PG_PORT opens TCP
_SOCKET_LIMIT = 103 if sys.platform == "darwin" else 107


def base() -> Path:
    """$PYFF_HOME, or /var/lib/pyff for root, or the user's cache directory. Created if missing."""
    path = _base().resolve()
    # pg_ctl passes the data directory through a shell in double quotes; libpq splits a host at commas.
    if odd := re.search(r"""["'$`\\,\n]""", str(path)):
        raise PgError(
            f"the directory {str(path)!r} cannot hold a server: its name contains {odd.group()!r}",
            hint="set PYFF_HOME to a path without quotes, commas, dollars and backslashes",
        )
    try:
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            # If root: the server's account must be able to traverse it; its own directory below is private.
            path.chmod(0o755 if os.geteuid() == 0 else 0o700)
    except OSError as error:
        raise PgError(
            f"cannot create {path}: {error.strerror}", hint="set PYFF_HOME to a directory you may write to"
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise PgError(f"cannot write to {path}", hint="set PYFF_HOME to a directory of your own")
    return path


def _base() -> Path:
    if home := os.environ.get("PYFF_HOME"):
        return Path(home).expanduser()
    if os.geteuid() == 0:
        return Path("/var/lib/pyff")
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "pyff"
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError as error:
        raise PgError("this user has no home directory", hint="set PYFF_HOME") from error
    return Path(cache) / "pyff"


def socket_fits(directory: Path, port: int) -> bool:
    return len(os.fsencode(directory / f".s.PGSQL.{port}")) <= _SOCKET_LIMIT
