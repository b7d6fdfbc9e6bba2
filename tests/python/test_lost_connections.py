"""Connections that the server closed while nobody used them."""

import psycopg
import pytest

from pyff import AsyncEngine, Engine


@pytest.fixture
def hang_up(db):
    """Ends every other connection to this test's database, and waits until they are gone."""

    def end() -> None:
        db.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )

    return end


def test_a_call_after_the_server_hung_up_does_not_fail(dsn, hang_up):
    with Engine(dsn, min_size=4) as engine:
        engine.ping()
        engine._pool.wait()
        for _ in range(3):
            hang_up()
            for _ in range(6):
                assert engine.ping().ok


async def test_nor_does_one_of_the_async_engine(dsn, hang_up):
    async with AsyncEngine(dsn, min_size=4) as engine:
        await engine.ping()
        await engine._pool.wait()
        hang_up()
        for _ in range(6):
            assert (await engine.ping()).ok


def test_the_callers_own_connection_stays_lost(dsn, hang_up):
    conn = psycopg.connect(dsn, autocommit=True)
    engine = Engine(conn)
    engine.ping()
    hang_up()
    with pytest.raises(psycopg.OperationalError):
        engine.ping()
