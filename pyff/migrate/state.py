"""Compares an installed schema with the files of this release."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from pyff import __version__
from pyff.failure import Failure
from pyff.migrate.place import Place
from pyff.migrate.statements import INSTALLATIONS, INSTALLED, state_of_functions
from pyff.migrate.tree import DbTree, MigrateError, shipped


class Status(StrEnum):
    CURRENT = "current"
    BEHIND = "behind"
    AHEAD = "ahead"
    EDITED = "edited"
    NOT_INSTALLED = "not installed"


@dataclass(frozen=True)
class State:
    """The result of `check`. `str(state)` is one line for people."""

    status: Status
    schema: str
    """The callers' schema."""
    private_schema: str
    """The schema of tables and helpers, existing or not."""
    version: int
    """The newest migration in the database; 0 if pyff is not installed."""
    needs: int
    """The newest migration of this release."""
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    functions_differ: bool = False
    pyff_version: str = ""
    """The release whose functions are installed."""
    elsewhere: str = ""
    """If pyff is not installed in `schema`: a later schema of the search_path that has it."""

    def __str__(self) -> str:
        where = f"schema {self.schema}: "
        if self.status is Status.CURRENT:
            return where + f"current, at version {self.version}"
        if self.status is Status.NOT_INSTALLED:
            there = f", but it is in schema {self.elsewhere} of the search_path" if self.elsewhere else ""
            return where + f"pyff is not installed{there}, this release has version {self.needs}"
        if self.status is Status.EDITED:
            return where + "files changed after they were applied: " + ", ".join(self.edited)
        if self.status is Status.AHEAD:
            return where + (
                f"newer than pyff {__version__}: it has " + ", ".join(self.unknown)
                if self.unknown
                else f"functions of pyff {self.pyff_version}, this is pyff {__version__}"
            )
        gaps = ["missing " + ", ".join(self.missing)] if self.missing else []
        gaps += ["functions differ"] if self.functions_differ else []
        return where + f"behind, at version {self.version} of {self.needs}: " + "; ".join(gaps)


class SchemaGap(Failure):
    """The installed schema does not fit this release."""


def read_state(conn: psycopg.Connection[Any], tree: DbTree, place: Place | None) -> State:
    """Compares, read-only. The connection should be in autocommit, so that locks end with each query."""
    if place is None:
        raise MigrateError("search_path contains no existing schema")
    cursor = conn.cursor(row_factory=tuple_row)
    if cursor.execute(INSTALLED, vars(place)).fetchone() != (True,):
        everything = tuple(m.id for m in tree.migrations)
        elsewhere, _ = cursor.execute(INSTALLATIONS).fetchone() or ("", "")
        return State(
            Status.NOT_INSTALLED,
            place.schema,
            place.private,
            0,
            tree.version,
            missing=everything,
            functions_differ=True,
            elsewhere=elsewhere,
        )
    applied = f"select version, migration, sha256 from {place.of('ff_schema_version')} order by version"  # noqa: S608
    rows = cursor.execute(applied.encode()).fetchall()
    recorded: dict[str, str] = {migration: sha256 for _, migration, sha256 in rows}
    version = rows[-1][0] if rows else 0
    sha256, pyff_version, migrated_since = cursor.execute(
        state_of_functions(place.of("ff_schema_state"), place.of("ff_schema_version")).encode()
    ).fetchone() or ("", "0", True)

    ours = {m.id: m.sha256 for m in tree.migrations}
    missing = tuple(id_ for id_ in ours if id_ not in recorded)
    unknown = tuple(id_ for id_ in recorded if id_ not in ours)
    edited = tuple(id_ for id_ in ours if id_ in recorded and ours[id_] != recorded[id_])
    differ = sha256 != tree.functions_sha256 or bool(migrated_since)
    if edited:
        status = Status.EDITED
    elif unknown or (differ and release(pyff_version) > release(__version__)):
        status = Status.AHEAD
    elif not recorded:
        status = Status.NOT_INSTALLED
    elif missing or differ:
        status = Status.BEHIND
    else:
        status = Status.CURRENT
    return State(
        status,
        place.schema,
        place.private,
        version,
        tree.version,
        missing,
        unknown,
        edited,
        differ,
        pyff_version,
    )


def release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: 1.2.0rc1 and 1.2.0 are the same release here."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


# --- the runtime's own check -----------------------------------------------------------------------------

_ASK = """\
select s.value::int, f.value, v.value
  from ff_setting('schema_version') s, ff_setting('functions_sha256') f, ff_setting('pyff_version') v"""
_NOT_INSTALLED = "pyff is not installed in this database, or not in a schema on the search_path"


def require_current(conn: psycopg.Connection[Any]) -> None:
    """Raises SchemaGap if the schema is older than this release. One query; any ff_ role may run it."""
    try:
        row = conn.cursor(row_factory=tuple_row).execute(_ASK).fetchone()
    except psycopg.Error as error:
        raise _explained(error) from error
    check_installed(row)


async def require_current_async(conn: psycopg.AsyncConnection[Any]) -> None:
    """`require_current` for an asynchronous connection."""
    try:
        row = await (await conn.cursor(row_factory=tuple_row).execute(_ASK)).fetchone()
    except psycopg.Error as error:
        raise _explained(error) from error
    check_installed(row)


def check_installed(
    row: tuple[int | None, str | None, str | None] | None, tree: DbTree | None = None
) -> None:
    """
    `row` is the result of `_ASK`. A newer database is accepted, because releases only add. An older one is rejected,
    and one with different functions of this or an older release.
    """
    tree = tree or shipped()
    version, sha256, pyff_version = row or (None, None, None)
    if not version:
        raise SchemaGap(_NOT_INSTALLED, hint="run pyff migrate")
    if version < tree.version:
        raise SchemaGap(
            f"the database has schema {version}, this pyff needs {tree.version}", hint="run pyff migrate"
        )
    if sha256 != tree.functions_sha256 and release(pyff_version or "") <= release(__version__):
        raise SchemaGap(
            f"the database has other functions (of pyff {pyff_version}) than this pyff {__version__}",
            hint="run pyff migrate",
        )


def _explained(error: psycopg.Error) -> Exception:
    if isinstance(error, psycopg.errors.UndefinedFunction):
        return SchemaGap(_NOT_INSTALLED, hint="run pyff migrate")
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return SchemaGap(
            f"this database user may not use pyff: {error.diag.message_primary}",
            hint="grant it one of the roles that pyff migrate creates, such as ff_worker",
        )
    return error
