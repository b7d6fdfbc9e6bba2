"""A server of their own: on a shared one the transactions of other tests would hold events back.

Every test has a database in autocommit mode; its fixtures are called as those of the other tests.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, temporary
from tests import modes

NUMBERS = count()


@pytest.fixture(scope="session")
def quiet_server() -> Iterator[TemporaryServer]:
    with temporary(
        autovacuum=False,
        max_prepared_transactions=5,
        deadlock_timeout="50ms",
        search_path="public, ff",
        **modes.SERVER,
    ) as server:
        with psycopg.connect(server.dsn, autocommit=True) as admin:
            admin.execute("create database quiet_template")
        template = make_conninfo(server.dsn, dbname="quiet_template")
        migrate(template)
        modes.bend_time(template)
        yield server


@pytest.fixture(scope="session")
def quiet_way(quiet_server: TemporaryServer) -> Iterator[Callable[[str], str]]:
    with modes.way(quiet_server.dsn) as way:
        yield way


@pytest.fixture
def dsn(quiet_server: TemporaryServer, quiet_way: Callable[[str], str]) -> Iterator[str]:
    name = f"quiet_{next(NUMBERS)}"
    with psycopg.connect(quiet_server.dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("create database {} template quiet_template strategy file_copy").format(
                sql.Identifier(name)
            )
        )
        yield quiet_way(make_conninfo(quiet_server.dsn, dbname=name))
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def empty(quiet_server: TemporaryServer) -> Iterator[psycopg.Connection[Any]]:
    """A database for calls that are refused: they leave nothing behind."""
    with psycopg.connect(quiet_server.dsn, autocommit=True) as admin:
        admin.execute("create database quiet_empty template quiet_template strategy file_copy")
    with psycopg.connect(quiet_server.dsn, dbname="quiet_empty", autocommit=True) as conn:
        yield conn


@pytest.fixture
def db(dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn
