"""Fixtures for pytest. Enable them in your conftest.py:

    pytest_plugins = ["pyff.testing.plugin"]

One server is started per run (or PYFF_TEST_DSN names one, for a login that may create databases), one template database
is migrated, and every test that uses the fixtures gets a copy. To add your own tables to the template, override
`pyff_prepare` in conftest.py: all modules share one template.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pyff.app.registry import App
from pyff.engine import Engine
from pyff.migrate import migrate
from pyff.postgres import PgError, temporary
from pyff.testing.clock import advance
from pyff.testing.drain import Drained, drain


class Kit:
    """The test's own database."""

    def __init__(self, dsn: str, conn: psycopg.Connection[Any], engine: Engine) -> None:
        self.dsn = dsn
        self.conn = conn
        self.engine = engine

    def drain(
        self,
        app: App,
        *,
        lanes: Iterable[str] | None = None,
        capabilities: Iterable[str] | None = None,
        reraise: bool = False,
    ) -> Drained:
        """Runs all ready work; see pyff.testing.drain."""
        return drain(app, self.conn, lanes=lanes, capabilities=capabilities, reraise=reraise)

    def advance(self, ms: int) -> int:
        """Moves the clock forward; see pyff.testing.advance."""
        return advance(self.conn, ms)


@pytest.fixture(scope="session")
def pyff_server() -> Iterator[str]:
    """The DSN of a server where the login may create databases."""
    given = os.environ.get("PYFF_TEST_DSN")
    if given:
        yield given
        return
    try:
        server = temporary()
    except PgError as error:
        pytest.fail(str(error))
    with server:
        yield server.dsn


@pytest.fixture(scope="session")
def pyff_prepare() -> Callable[[str], None]:
    """Override it to create your own tables once: it gets the DSN of the template database."""
    return lambda dsn: None


@pytest.fixture(scope="session")
def pyff_template(pyff_server: str, pyff_prepare: Callable[[str], None]) -> Iterator[str]:
    """The name of the migrated template database."""
    with _database(pyff_server) as name:
        dsn = make_conninfo(pyff_server, dbname=name)
        with psycopg.connect(pyff_server) as guard:  # roles belong to the server: migrate one at a time
            guard.execute("select pg_advisory_xact_lock(1885959783)")
            migrate(dsn)
        pyff_prepare(dsn)
        yield name


@pytest.fixture
def pyff_dsn(pyff_server: str, pyff_template: str) -> Iterator[str]:
    """The DSN of a database for this test only. It is dropped after the test."""
    with _database(pyff_server, pyff_template) as name:
        yield make_conninfo(pyff_server, dbname=name)


@pytest.fixture
def pyff_kit(pyff_dsn: str) -> Iterator[Kit]:
    """`drain` and `advance`, a connection in autocommit mode, and an engine, on the test's own database."""
    with psycopg.connect(pyff_dsn, autocommit=True) as conn, Engine(pyff_dsn) as engine:
        yield Kit(pyff_dsn, conn, engine)


class _database:  # noqa: N801
    """A database that exists during the `with` block."""

    def __init__(self, server: str, template: str | None = None) -> None:
        self._server = server
        self._template = template
        self._name = f"pyff_kit_{uuid4().hex[:12]}"

    def __enter__(self) -> str:
        create = sql.SQL("create database {}").format(sql.Identifier(self._name))
        if self._template is not None:
            create += sql.SQL(" template {}").format(sql.Identifier(self._template))
        with psycopg.connect(self._server, autocommit=True) as conn:
            conn.execute(create)
        return self._name

    def __exit__(self, *_: object) -> None:
        with psycopg.connect(self._server, autocommit=True) as conn:
            conn.execute(
                sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(self._name))
            )
