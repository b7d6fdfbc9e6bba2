"""yoyo, made safe to kill, to run concurrently and to run through a transaction pooler."""

import glob
import socket
import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from yoyo import internalmigrations  # type: ignore[import-untyped]
from yoyo.backends.core.postgresql import PostgresqlPsycopgBackend  # type: ignore[import-untyped]
from yoyo.connections import DatabaseURI  # type: ignore[import-untyped]
from yoyo.migrations import default_migration_table, read_migrations  # type: ignore[import-untyped]

from pyff.migrate import statements
from pyff.migrate.place import Place
from pyff.migrate.tree import DbTree, Migration


class _SilentCursor(psycopg.Cursor[Any]):
    """yoyo prints the rows of every statement that has a description."""

    description = None


class Backend(PostgresqlPsycopgBackend):  # type: ignore[misc]
    """
    yoyo commits a migration and its record separately: if killed in between, it retries the migration for ever. Here
    both are one transaction, together with the row in ff_schema_version.
    """

    _internal_schema_updated: bool
    place: Place

    def __init__(self, uri: DatabaseURI, migration_table: str) -> None:
        super().__init__(uri, migration_table)
        self.connection.cursor_factory = _SilentCursor

    @classmethod
    def connect_to(cls, dsn: str, place: Place) -> "Backend":
        arguments = {**conninfo_to_dict(dsn), "autocommit": True, "prepare_threshold": None}
        uri = DatabaseURI("postgresql+psycopg", None, None, None, None, None, arguments)
        backend = cls(uri, default_migration_table)
        backend.place = place
        return backend

    def copy(self) -> "Backend":
        session: Backend = super().copy()
        session.place = self.place
        return session

    def applied(self) -> set[str]:
        self.ensure_internal_schema_updated()
        query = f"select migration_id from {self.place.of('_yoyo_migration')}"  # noqa: S608
        return {row[0] for row in self.connection.execute(query.encode())}

    def apply(self, tree: DbTree, migration: Migration) -> bool:
        """False if another process has applied it meanwhile."""
        return self._step(tree, migration, "apply")

    def adopt(self, migrations: Iterable[Migration]) -> None:
        """Records migrations applied by the yoyo command, without checksums: released migrations are never edited."""
        with self.transaction():
            self.connection.execute(statements.LOCK_STEP)
            for migration in migrations:
                self.connection.execute(
                    statements.RECORD, [migration.version, migration.id, migration.sha256]
                )

    def undo(self, tree: DbTree, migration: Migration) -> bool:
        return self._step(tree, migration, "rollback")

    def _step(self, tree: DbTree, migration: Migration, direction: str) -> bool:
        applying = direction == "apply"
        self.ensure_internal_schema_updated()
        yoyos = yoyo_migrations(tree)[migration.id]
        yoyos.load()
        with self.copy() as session:
            if not yoyos.use_transactions:
                # If killed here, the migration runs again: such a migration must be repeatable.
                session.connection.execute(self.place.look_here().encode())
                yoyos.process_steps(session, direction)
                session.connection.execute("reset search_path")
            with session.transaction():
                session.connection.execute(statements.LOCK_STEP)
                if session.is_applied(yoyos) == applying:
                    return False
                session.connection.execute(statements.BEGIN_STEP)
                if not applying:
                    session.connection.execute(statements.FORGET, [migration.version])
                if yoyos.use_transactions:
                    yoyos.process_steps(session, direction)
                session.log_migration(yoyos, direction)
                if applying:
                    session.mark_one(yoyos, log=False)
                    session.connection.execute(
                        statements.RECORD, [migration.version, migration.id, migration.sha256]
                    )
                else:
                    session.unmark_one(yoyos, log=False)
        return True

    # --- what yoyo does in its own way ---------------------------------------------------------------------

    @contextmanager
    def lock(self, timeout: float = 0) -> Iterator[None]:
        """No lock: yoyo's is a row, which a killed run leaves behind. The guard's advisory lock replaces it."""
        yield

    @contextmanager
    def disable_transactions(self) -> Iterator[None]:
        yield  # the connection is already in autocommit: no ROLLBACK, no warning in the server's log

    def transaction(self, rollback_on_exit: bool = False) -> AbstractContextManager[Any]:
        if self._in_transaction:  # all or nothing: savepoints are not needed
            return nullcontext()
        manager: AbstractContextManager[Any] = super().transaction(rollback_on_exit)
        return manager

    def begin(self) -> None:
        self._in_transaction = True
        self.execute("begin isolation level read committed read write")
        self.connection.execute(self.place.enter().encode())

    def ensure_internal_schema_updated(self) -> None:
        if self._internal_schema_updated or self._in_transaction:
            return
        with self.transaction():
            self.connection.execute(statements.LOCK_STEP)
            if internalmigrations.needs_upgrading(self):
                internalmigrations.upgrade(self)
        self._internal_schema_updated = True

    def list_tables(self, **_: object) -> list[str]:
        rows = self.connection.execute("select tablename from pg_tables where schemaname = current_schema()")
        return [row[0] for row in rows]

    def get_log_data(self, migration: Any = None, operation: str = "apply") -> dict[str, Any]:  # noqa: ANN401
        """The database's user, since the system's may have no name; the host's name without asking DNS."""
        return {
            "id": str(uuid.uuid4()),
            "migration_id": migration.id if migration else None,
            "migration_hash": migration.hash if migration else None,
            "username": self.connection.info.user,
            "hostname": socket.gethostname(),
            "created_at_utc": datetime.now(UTC).replace(tzinfo=None),
            "operation": operation,
        }


def yoyo_migrations(tree: DbTree) -> dict[str, Any]:
    # Escaped, because yoyo treats the directory as a glob pattern.
    return {m.id: m for m in read_migrations(glob.escape(str(tree.root / "migrations")))}
