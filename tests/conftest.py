"""One temporary server per run, one migrated template per worker, one copy of it per test.

The template is that of pyff.testing. A copy is made by a connection that stays, and by copying files, which
takes half the time of what its fixture `pyff_dsn` does for any server.

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
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pyff.postgres import PgError, TemporaryServer, find, temporary
from tests import modes, tiers

pytest_plugins = ["pyff.testing.plugin"]

Connect = Callable[..., psycopg.Connection[Any]]

_server: TemporaryServer | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    tiers.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """The controller starts the server; workers are its children and find it in the environment."""
    global _server  # noqa: PLW0603
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    modes.configure(config)
    tiers.configure(config)
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


@pytest.hookimpl(tryfirst=True)  # before -m selects by these marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.mark(items)
    modes.leave_out(items)
    tiers.select(config, items)


@pytest.fixture(scope="session")
def pyff_prepare() -> Callable[[str], None]:
    """For the template of pyff.testing.plugin."""
    return modes.bend_time


@pytest.fixture(scope="session")
def admin(pyff_server: str) -> Iterator[psycopg.Connection[Any]]:
    """Creates and drops databases."""
    with psycopg.connect(pyff_server, autocommit=True) as conn:
        yield conn


NUMBERS = count()


@contextmanager
def copied(admin: psycopg.Connection[Any], template: str, worker_id: str) -> Iterator[str]:
    """The conninfo of a copy that exists as long as the block. No name comes twice: for a while, PgBouncer rejects
    clients of a database that it found gone."""
    name = f"pyff_test_{worker_id}_{next(NUMBERS)}"
    there, drop = sql.Identifier(name), sql.SQL("drop database if exists {} with (force)")
    admin.execute(drop.format(there))  # a killed run may have left it
    admin.execute(
        sql.SQL("create database {} template {} strategy file_copy").format(there, sql.Identifier(template))
    )
    yield make_conninfo(os.environ["PYFF_TEST_DSN"], dbname=name)
    admin.execute(drop.format(there))


@pytest.fixture(scope="session")
def way_in(pyff_server: str) -> Iterator[Callable[[str], str]]:
    """How tests reach a database: as it is, or through PgBouncer."""
    with modes.way(pyff_server) as way:
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
    admin: psycopg.Connection[Any], pyff_template: str, worker_id: str, way_in: Callable[[str], str]
) -> Iterator[psycopg.Connection[Any]]:
    """A connection to a migrated database which every test leaves as it found it."""
    with (
        copied(admin, pyff_template, worker_id) as there,
        psycopg.connect(way_in(there)) as conn,
    ):
        yield looking_behind(conn)


@pytest.fixture
def db(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """
    A connection to a migrated database with nothing in it. A test that opens further connections (`connect`,
    `dsn`) gets a copy of its own, in autocommit mode. Any other runs in a transaction that is rolled back,
    which is far cheaper; tests/sql.py calls functions under savepoints, so that they may fail.
    """
    if {"connect", "dsn"} & set(request.fixturenames):
        with psycopg.connect(request.getfixturevalue("dsn"), autocommit=True) as conn:
            yield looking_behind(conn)
        return
    conn = request.getfixturevalue("shared")
    conn.execute("select")  # opens the transaction
    yield conn
    conn.rollback()


@pytest.fixture
def dsn(
    admin: psycopg.Connection[Any], pyff_template: str, worker_id: str, way_in: Callable[[str], str]
) -> Iterator[str]:
    """The conninfo of this test's database."""
    with copied(admin, pyff_template, worker_id) as there:
        yield way_in(there)


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
    """The clock as every connection sees it. It runs until it is set; then only `advance` moves it.

    A call that waits for a lock sees it move. It does not with pyff.testing, which replaces the function ff_now_ms.
    """

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
