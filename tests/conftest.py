"""One temporary server per run, one migrated template per worker, one clone of it per test.

PYFF_TEST_DSN, if set, names a server to use instead (by a superuser; databases pyff_test* are dropped).
PYFF_TEST_ISOLATION ("repeatable read", "serializable") is the level at which every transaction runs; tests/sql.py
then calls again after a serialization failure, as a client does. PYFF_TEST_PGBOUNCER=1 puts a PgBouncer in
transaction mode between tests and server. Tests that cannot hold in a mode are marked with it and a reason.

PYFF_TEST_TIME looks for tests that pass or fail by chance. "coarse 2000": the clock of the engine moves once in so
many milliseconds, and of two ids of one moment the later one sorts first. "leaping 20": between any two looks at the
clock pass at least so many milliseconds. Only tests of the clock itself fail then.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pytest_postgresql import factories

from pyff.postgres import PgError, TemporaryServer, find, temporary
from tests import modes

Connect = Callable[..., psycopg.Connection[Any]]

_server: TemporaryServer | None = None


def pytest_configure(config: pytest.Config) -> None:
    """The controller starts the server; workers are its children and find it in the environment."""
    global _server  # noqa: PLW0603
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.option.postgresql_drop_test_database = True  # a killed run may have left some
    modes.configure(config)
    if hasattr(config, "workerinput") or config.option.collectonly or os.environ.get("PYFF_TEST_DSN"):
        return
    try:
        _server = temporary(**modes.SERVER)
    except PgError as error:
        raise pytest.UsageError(str(error)) from error
    os.environ["PYFF_TEST_DSN"] = _server.dsn
    os.environ["PYFF_TEST_BINDIR"] = str(_server.bindir)


def pytest_unconfigure() -> None:
    global _server  # noqa: PLW0603
    if _server:
        _server.close()
        _server = None
        del os.environ["PYFF_TEST_DSN"], os.environ["PYFF_TEST_BINDIR"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    modes.leave_out(items)


def _conninfo(dbname: str, **server: str | int | None) -> str:
    return make_conninfo("", dbname=dbname, **{name: value for name, value in server.items() if value})


def _load(*, host: str, port: int, user: str, dbname: str, password: str | None, **_: object) -> None:
    from pyff.migrate import migrate

    # Roles belong to the whole server, so two workers must not create them at once.
    with psycopg.connect(os.environ["PYFF_TEST_DSN"]) as guard:
        guard.execute("select pg_advisory_xact_lock(1885959782)")
        conninfo = _conninfo(dbname, host=host, port=port, user=user, password=password)
        migrate(conninfo)
        modes.bend_time(conninfo)


@pytest.fixture(scope="session")
def pg_server() -> SimpleNamespace:
    """The attributes that pytest-postgresql wants of a server."""
    given = conninfo_to_dict(os.environ["PYFF_TEST_DSN"])
    return SimpleNamespace(
        host=given.get("host", "localhost"),
        port=int(given.get("port") or 5432),
        user=given.get("user", "postgres"),
        password=given.get("password"),
        options=given.get("options", ""),
        maintenance_dbname=given.get("dbname", "postgres"),
        template_dbname=None,
    )


pg_template = factories.postgresql_noproc(dbname="pyff_test", load=[_load], depends_on="pg_server")
pg_clone = factories.postgresql("pg_template")


@pytest.fixture(scope="session")
def way_in(pg_server: SimpleNamespace) -> Iterator[Callable[[str], str]]:
    """How tests reach a database: as it is, or through PgBouncer."""
    with modes.way(os.environ["PYFF_TEST_DSN"]) as way:
        yield way


def looking_behind(conn: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Tests look at tables and helpers too. A role without USAGE on the private schema cannot find them."""
    if not modes.PGBOUNCER:  # there tests/pgbouncer.py has set it for every connection to the server
        autocommit, conn.autocommit = conn.autocommit, True
        conn.execute("set search_path = public, ff")
        conn.autocommit = autocommit
    return conn


@pytest.fixture(scope="session")
def shared(
    pg_template: Any, worker_id: str, way_in: Callable[[str], str]
) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a migrated database which every test leaves as it found it."""
    name = f"pyff_test_shared_{worker_id}"
    with psycopg.connect(os.environ["PYFF_TEST_DSN"], autocommit=True) as admin:
        admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
        admin.execute(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(pg_template.template_dbname)
            )
        )
        with psycopg.connect(way_in(make_conninfo(os.environ["PYFF_TEST_DSN"], dbname=name))) as conn:
            yield looking_behind(conn)
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def db(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """
    A connection to a migrated database with nothing in it. A test that opens further connections (`connect`,
    `dsn`) gets a clone of its own, in autocommit mode. Any other runs in a transaction that is rolled back,
    which is far cheaper; tests/sql.py calls functions under savepoints, so that they may fail.
    """
    if {"connect", "dsn"} & set(request.fixturenames):
        if modes.PGBOUNCER:
            with psycopg.connect(request.getfixturevalue("dsn"), autocommit=True) as pooled_clone:
                yield looking_behind(pooled_clone)
            return
        clone = request.getfixturevalue("pg_clone")
        clone.autocommit = True
        yield looking_behind(clone)
        return
    conn = request.getfixturevalue("shared")
    conn.execute("select")  # opens the transaction
    yield conn
    conn.rollback()


@pytest.fixture
def dsn(pg_clone: psycopg.Connection[Any], pg_server: SimpleNamespace, way_in: Callable[[str], str]) -> str:
    """The conninfo of this test's database. (`pg_clone.info.dsn` has options which an older psql rejects.)"""
    return way_in(
        _conninfo(
            pg_clone.info.dbname, **{k: getattr(pg_server, k) for k in ("host", "port", "user", "password")}
        )
    )


@pytest.fixture
def connect(dsn: str) -> Iterator[Connect]:
    """Opens further connections to this test's database; they are closed at its end."""
    opened: list[psycopg.Connection[Any]] = []

    def open_one(**options: Any) -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(dsn, **{"autocommit": True, **options}))
        return looking_behind(opened[-1])

    yield open_one
    for connection in opened:
        connection.close()


@pytest.fixture(scope="session")
def server_bindir() -> Path:
    """PostgreSQL's programs (psql, pg_dump, pgbench...) that belong to the server under test."""
    given = os.environ.get("PYFF_TEST_BINDIR")
    return Path(given) if given else find().bindir


class Clock:
    """The clock as every connection sees it. It runs until it is set; then only `advance` moves it."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        found = connection.execute(
            "select pronamespace::regnamespace::text, prosrc from pg_proc where proname = 'ff_now_ms'"
        ).fetchone()
        assert found, "the database has no function ff_now_ms"
        schema, real = found
        self._table = sql.Identifier(schema, "test_clock")
        function = sql.Identifier(schema, "ff_now_ms")
        self._run("create table {table} (frozen_ms bigint, offset_ms bigint not null)")
        self._run("insert into {table} values (null, 0)")
        self._run("grant select on {table} to public")
        moved = sql.SQL("select coalesce(frozen_ms, ({real})) + offset_ms from {table}").format(
            real=sql.SQL(real), table=self._table
        )
        connection.execute(
            sql.SQL(
                "create or replace function {}() returns bigint language sql volatile parallel safe as {}"
            ).format(function, sql.Literal(moved.as_string(connection)))
        )

    def now(self) -> int:
        return int(self._run("select ff_now_ms()").fetchone()[0])

    def set(self, ms: int) -> None:
        self._run("update {table} set frozen_ms = %s, offset_ms = 0", ms)

    def advance(self, ms: int) -> None:
        self._run("update {table} set offset_ms = offset_ms + %s", ms)

    def freeze(self) -> int:
        """Stops the clock where it is, and says where that is."""
        self.set(now := self.now())
        return now

    def _run(self, statement: str, *arguments: int) -> Any:
        return self._connection.execute(sql.SQL(statement).format(table=self._table), arguments or None)


@pytest.fixture
def clock(db: psycopg.Connection[Any]) -> Clock:
    """Moves the engine's clock in this test's database, for all its connections."""
    return Clock(db)
