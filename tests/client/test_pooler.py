"""Through a connection pooler in transaction mode, where the next call may meet another server connection."""

import psycopg
import pytest

from pyff import AsyncEngine, Engine
from tests.pgbouncer import pooled as pooler

CALLS = 30


@pytest.fixture
def pooled(dsn):
    """A DSN that goes through pgbouncer, with two server connections behind it."""
    with pooler(dsn) as through:
        yield through


def test_an_engine_without_prepared_statements_works_through_a_pooler(pooled):
    with Engine(pooled, prepare_threshold=None) as engine:
        for _ in range(CALLS):
            assert engine.ping().ok
            engine.create_execution("default")


async def test_an_async_engine_without_prepared_statements_works_through_a_pooler(pooled):
    async with AsyncEngine(pooled, prepare_threshold=None) as engine:
        for _ in range(CALLS):
            assert (await engine.ping()).ok


def test_a_connection_of_the_callers_is_not_prepared_on_either(pooled):
    with psycopg.connect(pooled, autocommit=True) as conn:
        engine = Engine(conn, prepare_threshold=None)
        for _ in range(CALLS):
            assert engine.ping().ok


def test_prepared_statements_are_used_by_default(engine, dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        engine = Engine(conn)
        for _ in range(10):
            engine.ping()
        prepared = conn.execute("select statement from pg_prepared_statements").fetchall()
    assert any("ff_ping" in statement for (statement,) in prepared)
