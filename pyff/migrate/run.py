"""`migrate` and `rollback`: one at a time per schema, each step all or nothing."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import tuple_row

from pyff import __version__
from pyff.migrate import statements
from pyff.migrate.failures import explained
from pyff.migrate.functions import apply_functions, drop_functions, record, run_scripts
from pyff.migrate.place import Place, choose, find
from pyff.migrate.state import State, Status, read_state, release
from pyff.migrate.tree import DbTree, MigrateError, shipped

if TYPE_CHECKING:  # yoyo loads slowly, and the runtime only checks the state
    from pyff.migrate.backend import Backend

_WAIT_S = 300.0
_POLL_S = 0.1
_DEADLOCKS = 5  # retries after deadlocks with running sessions


@dataclass(frozen=True)
class Report:
    """The result of `migrate`."""

    schema: str
    """The callers' schema."""
    private_schema: str
    schema_version: int
    applied: tuple[str, ...]
    functions_applied: bool
    dropped: tuple[str, ...]
    roles_created: tuple[str, ...]


def migrate(
    dsn: str,
    *,
    schema: str | None = None,
    private_schema: str | None = None,
    roles: bool = True,
    db: DbTree | None = None,
) -> Report:
    """
    Installs pyff, or upgrades it to this release. Safe to repeat, to run concurrently and to kill.
    `schema`, for the functions and views, is by default the first one of the connection's search_path;
    `private_schema`, for tables and helpers, is the one that belongs to it, or `ff`. `roles=False` creates no roles.
    """
    tree = db or shipped()
    applied: list[str] = []
    for _ in range(_DEADLOCKS):
        try:
            return _migrate(dsn, (schema, private_schema), tree, roles, applied)
        except MigrateError as error:
            if not isinstance(error.__cause__, psycopg.errors.DeadlockDetected):
                raise
    return _migrate(dsn, (schema, private_schema), tree, roles, applied)


def _migrate(
    dsn: str, asked: tuple[str | None, str | None], tree: DbTree, roles: bool, applied: list[str]
) -> Report:
    with _guard(dsn, *asked) as (guard, place), _backend(dsn, place) as backend:
        with explained(""):
            _create_private_schema(backend)
            with backend.transaction():
                backend.connection.execute(statements.PGCRYPTO)
            created = _create_roles(backend) if roles else ()
        state = _settled_state(backend, tree)
        _refuse_gap(state)
        for migration in tree.migrations:
            if migration.id in state.missing:
                with explained(migration.id):
                    if backend.apply(tree, migration):
                        applied.append(migration.id)
        with explained(""):
            guard.execute(statements.BEGIN_STEP)
            guard.execute(statements.PATH)  # again: pgcrypto and the private schema exist now
        differ = state.functions_differ or bool(state.missing)
        dropped = apply_functions(guard, tree, place) if differ else ()
        run_scripts(guard, tree, place)
        with explained("recording the release"):
            if differ or release(__version__) > release(state.pyff_version):
                record(guard, tree)
            guard.commit()
    return Report(place.schema, place.private, tree.version, tuple(applied), differ, dropped, created)


def rollback(
    dsn: str,
    to_version: int,
    *,
    schema: str | None = None,
    private_schema: str | None = None,
    db: DbTree | None = None,
) -> tuple[str, ...]:
    """
    Undoes every migration after `to_version`, deleting its data; 0 undoes all. Functions and views are dropped
    first: the release of `to_version` installs its own with its `migrate`. Returns the undone migrations. Roles,
    pgcrypto and the private schema with yoyo's tables stay.
    """
    tree = db or shipped()
    with _guard(dsn, schema, private_schema) as (guard, place), _backend(dsn, place) as backend:
        with explained(""):
            _create_private_schema(backend)
        state = _settled_state(backend, tree)
        if state.unknown:
            raise MigrateError(str(state), hint="roll back with the release that applied them")
        if not 0 <= to_version <= state.version:
            raise MigrateError(
                f"cannot roll back to {to_version}: the database is at version {state.version}"
            )
        doomed = [m for m in tree.migrations if m.version > to_version and m.id not in state.missing]
        if doomed:
            with explained("removing functions and views"), backend.transaction():
                backend.connection.execute(statements.LOCK_STEP)
                backend.connection.execute(statements.BEGIN_STEP)
                backend.connection.execute("delete from ff_schema_state")
                drop_functions(backend.connection)
        undone = []
        for migration in reversed(doomed):
            with explained(migration.id):
                if backend.undo(tree, migration):
                    undone.append(migration.id)
        if doomed:
            with explained("removing functions and views"):
                guard.execute(statements.BEGIN_STEP)
                guard.execute(statements.PATH)
                drop_functions(guard)
                guard.commit()
    return tuple(undone)


def render_sql(
    *,
    schema: str | None = None,
    private_schema: str | None = None,
    roles: bool = True,
    db: DbTree | None = None,
) -> str:
    """
    The actions of `migrate` as a script for psql. Both leave the same schema and the same records. No connection is
    made: without names, the schemas are `public` and `ff`.
    """
    from pyff.migrate.script import render

    default = Place()
    return render(db or shipped(), Place(schema or default.schema, private_schema or default.private), roles)


def check(
    dsn: str, *, schema: str | None = None, private_schema: str | None = None, db: DbTree | None = None
) -> State:
    """Compares the installed schema with this release. Read-only."""
    with explained("cannot check"), psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as conn:
        return read_state(conn, db or shipped(), find(conn, schema, private_schema))


@contextmanager
def _guard(
    dsn: str, schema: str | None, private: str | None
) -> Iterator[tuple[psycopg.Connection[Any], Place]]:
    """
    A connection whose open transaction marks a running migration of this schema. It must not touch our tables before
    the migrations are done, or they would wait for its locks.
    """
    with explained("cannot connect"):
        guard = psycopg.connect(dsn, prepare_threshold=None, row_factory=tuple_row)
    with guard:
        guard.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        guard.read_only = False
        with explained(""):
            guard.execute(choose(schema, private).encode())
            guard.execute(statements.PREFLIGHT)
            place = find(guard, schema, private) or Place()  # preflight has checked it
            guard.execute(place.enter().encode())
            guard.execute(statements.BEGIN_STEP)
            deadline = time.monotonic() + _WAIT_S
            while guard.execute(statements.TRY_LOCK).fetchone() != (True,):
                if time.monotonic() > deadline:
                    raise MigrateError(
                        "another migration of this schema is still running", hint="try again later"
                    )
                time.sleep(_POLL_S)
        yield guard, place


def _backend(dsn: str, place: Place) -> "Backend":
    from pyff.migrate.backend import Backend

    with explained("cannot connect"):
        return Backend.connect_to(dsn, place)


def _create_private_schema(backend: "Backend") -> None:
    with backend.transaction():
        backend.connection.execute(statements.LOCK_STEP)
        backend.connection.execute(statements.PRIVATE)


def _create_roles(backend: "Backend") -> tuple[str, ...]:
    """Runs in its own short transaction: a migration of another database may wait for it."""
    query = r"select rolname from pg_roles where rolname like 'ff\_%' order by rolname"
    with backend.transaction():
        before = backend.connection.execute(query).fetchall()
        backend.connection.execute(statements.ROLES)
        return tuple(row[0] for row in backend.connection.execute(query) if row not in before)


def _settled_state(backend: "Backend", tree: DbTree) -> State:
    with explained("yoyo's tables"):
        applied = backend.applied()  # first: it waits for statements that a killed run left on the server
    with explained("pyff's tables"):
        state = read_state(backend.connection, tree, backend.place)
        by_yoyo = [m for m in tree.migrations if m.id in applied and m.id in state.missing]
        if by_yoyo:
            backend.adopt(by_yoyo)
            state = read_state(backend.connection, tree, backend.place)
    undone = [m.id for m in tree.migrations if m.id not in applied and m.id not in state.missing]
    if undone:
        listed = ", ".join(f"'{name}'" for name in undone)
        raise MigrateError(
            "_yoyo_migration and ff_schema_version disagree about " + ", ".join(undone),
            hint="if the yoyo command rolled them back, remove their records: "  # noqa: S608
            f"delete from {backend.place.of('ff_schema_version')} where migration in ({listed}); if not, run yoyo mark",
        )
    return state


def _refuse_gap(state: State) -> None:
    if state.status is Status.EDITED:
        raise MigrateError(
            str(state),
            hint="an applied migration is never edited: restore the file and write a new migration",
        )
    if state.status is Status.AHEAD:
        raise MigrateError(str(state), hint="migrate with the release that the database has, or a newer one")
