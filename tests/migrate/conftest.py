"""Databases to migrate, and the comparison of their schemas."""

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pyff.postgres import TemporaryServer, temporary
from tests.migrate.support import Database, Release, Runner


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path / "db")


@pytest.fixture
def empty(pyff_server: str) -> Iterator[Callable[..., Database]]:
    """Makes databases in which nothing is installed yet."""
    made = []

    def make(on: str = pyff_server) -> Database:
        name = f"pyff_test_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(on, autocommit=True) as conn:
            conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        made.append((on, name))
        return Database(make_conninfo(on, dbname=name))

    yield make
    for on, name in made:
        with psycopg.connect(on, autocommit=True) as conn:
            conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


@pytest.fixture
def database(empty: Callable[..., Database]) -> Database:
    return empty()


@pytest.fixture(scope="module")
def other_server() -> Iterator[TemporaryServer]:
    """A server of its own, for what belongs to a whole server: roles, and its log."""
    with temporary() as server:
        yield server


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """A role without any right of its own, besides TEMPORARY and CONNECT, which PUBLIC has."""
    name = f"pyff_test_{uuid.uuid4().hex[:12]}"
    database.rows(f"create role {name}")
    yield name
    database.rows(f"drop owned by {name} cascade")
    database.rows(f"drop role {name}")


@pytest.fixture
def runner() -> Runner:
    return Runner()


@pytest.fixture
def dump(server_bindir: Path) -> Callable[[str], str]:
    """The whole schema as text, and with it all that pyff recorded apart from times."""

    def taken(dsn: str) -> str:
        done = subprocess.run(
            [server_bindir / "pg_dump", "--schema-only", "--no-publications", dsn],
            check=True,
            capture_output=True,
            text=True,
        )
        schema = [
            line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))
        ]
        with psycopg.connect(dsn, options="-csearch_path=ff") as conn:
            records = [
                *conn.execute("select version, migration, sha256 from ff_schema_version order by version"),
                *conn.execute("select functions_sha256, pyff_version from ff_schema_state"),
                *conn.execute("select migration_id, migration_hash from _yoyo_migration order by 1"),
                *conn.execute("select operation, migration_id from _yoyo_log order by created_at_utc"),
                *conn.execute("select version from _yoyo_version"),
            ]
        return "\n".join([*schema, *map(repr, records)])

    return taken
