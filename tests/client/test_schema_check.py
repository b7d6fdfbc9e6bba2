"""An engine does not work on a schema that it was not made for."""

import psycopg
import pytest

from pyff import AsyncEngine, Engine
from pyff.migrate import SchemaGap

STALE = "update ff_schema_state set functions_sha256 = 'of another tree'"


def test_the_first_call_refuses_a_schema_that_does_not_fit(engine, db):
    db.execute(STALE)
    with pytest.raises(SchemaGap, match="functions"):
        engine.ping()


async def test_the_first_async_call_refuses_a_schema_that_does_not_fit(async_engine, db):
    db.execute(STALE)
    with pytest.raises(SchemaGap, match="functions"):
        await async_engine.ping()


def test_a_refused_engine_works_once_the_schema_fits(engine, db):
    (fitting,) = db.execute("select functions_sha256 from ff_schema_state").fetchone()
    db.execute(STALE)
    with pytest.raises(SchemaGap):
        engine.ping()
    db.execute("update ff_schema_state set functions_sha256 = %s", [fitting])
    assert engine.ping().ok


def test_the_check_is_made_once(engine, db):
    engine.ping()
    db.execute(STALE)
    assert engine.ping().ok


@pytest.mark.own_session("connects with options")
def test_a_database_without_pyff_is_named_as_such(dsn):
    elsewhere = psycopg.conninfo.make_conninfo(dsn, options="-c search_path=pg_catalog")
    with Engine(elsewhere) as engine, pytest.raises(SchemaGap, match="not installed"):
        engine.ping()


def test_the_check_can_be_left_out(dsn, db):
    db.execute(STALE)
    with Engine(dsn, check_schema=False) as engine:
        assert engine.ping().ok


async def test_the_check_can_be_left_out_of_an_async_engine(dsn, db):
    db.execute(STALE)
    async with AsyncEngine(dsn, check_schema=False) as engine:
        assert (await engine.ping()).ok
