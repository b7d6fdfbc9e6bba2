"""The transaction of a call, and who ends it."""

import asyncio
import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from pyff import AsyncEngine, Engine, InvalidInput

IDLE, OPEN = TransactionStatus.IDLE, TransactionStatus.INTRANS


def executions(db):
    (count,) = db.execute("select count(*) from ff_exec_core").fetchone()
    return count


def test_a_call_without_a_connection_is_committed_at_once(engine, db):
    engine.create_execution("default")
    assert executions(db) == 1


def test_a_call_with_a_connection_rolls_back_with_the_callers_transaction(engine, connect, db):
    conn = connect(autocommit=False)
    engine.create_execution("default", conn=conn)
    assert conn.info.transaction_status == OPEN
    assert executions(db) == 0
    conn.rollback()
    assert executions(db) == 0


def test_a_call_with_a_connection_commits_with_the_callers_own_rows(engine, connect, db):
    db.execute("create table orders (id int)")
    with connect(autocommit=False) as conn:
        conn.execute("insert into orders values (1)")
        engine.create_execution("default", conn=conn)
    assert executions(db) == 1


def test_a_refused_call_leaves_the_callers_transaction_to_the_caller(engine, connect):
    conn = connect(autocommit=False)
    with pytest.raises(InvalidInput):
        engine.setting("no such setting", conn=conn)
    assert conn.info.transaction_status == TransactionStatus.INERROR


def test_a_savepoint_of_the_caller_survives_a_refused_call(engine, connect, db):
    with connect() as conn, conn.transaction():
        engine.create_execution("default", conn=conn)
        with pytest.raises(InvalidInput), conn.transaction():
            engine.setting("no such setting", conn=conn)
    assert executions(db) == 1


def test_an_engine_on_a_connection_joins_the_transaction_that_is_open(connect, db):
    conn = connect(autocommit=False)
    engine = Engine(conn)
    conn.execute("select 1")
    engine.create_execution("default")
    assert conn.info.transaction_status == OPEN
    conn.rollback()
    assert executions(db) == 0


@pytest.mark.parametrize("autocommit", [True, False])
def test_an_engine_on_an_idle_connection_commits_each_call(connect, db, autocommit):
    conn = connect(autocommit=autocommit)
    engine = Engine(conn)
    engine.create_execution("default")
    assert executions(db) == 1
    assert conn.info.transaction_status == IDLE
    with pytest.raises(InvalidInput):
        engine.setting("no such setting")
    assert conn.info.transaction_status == IDLE


def test_the_callers_row_factory_and_cursor_class_do_not_matter(connect):
    conn = connect(row_factory=dict_row, cursor_factory=psycopg.ClientCursor)
    assert Engine(conn).ping().ok


@pytest.mark.parametrize("autocommit", [True, False])
def test_an_engine_on_a_pool_commits_each_call_and_leaves_the_pool_open(dsn, db, autocommit):
    with ConnectionPool(dsn, min_size=1, kwargs={"autocommit": autocommit}, open=True) as pool:
        with Engine(pool) as engine:
            engine.create_execution("default")
        assert executions(db) == 1
        with pool.connection() as conn:
            assert conn.execute("select 1").fetchone() == (1,)


def connections(db):
    query = "select count(*) from pg_stat_activity where application_name = 'pyff' and datname = current_database()"
    return db.execute(query).fetchone()[0]


def test_calls_one_after_another_share_one_connection(engine, db):
    """Each connection has to learn every function, and keeps its own memory for that."""
    assert {engine.ping() and connections(db) for _ in range(3)} == {1}


async def test_async_calls_one_after_another_share_one_connection(async_engine, db):
    assert {await async_engine.ping() and connections(db) for _ in range(3)} == {1}


@pytest.mark.parametrize("ms", range(8))
async def test_a_first_call_that_is_given_up_spoils_nothing(dsn, ms):
    async with AsyncEngine(dsn) as engine:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(engine.ping(), ms / 1000)
        assert await engine.ping()


@pytest.mark.own_session("connects as another role")
def test_an_engine_makes_do_with_fewer_connections_than_it_would_like(dsn, db):
    db.execute("create role few login connection limit 1 in role ff_reader")
    try:
        with Engine(make_conninfo(dsn, user="few"), min_size=4, check_schema=False) as engine:
            began = time.monotonic()
            assert engine.ping()
            assert time.monotonic() - began < 10
            assert engine.ping()
    finally:
        db.execute("drop owned by few; drop role few")


def test_threads_share_an_engine(engine, db):
    barrier = threading.Barrier(8)

    def create(_):
        barrier.wait()
        return engine.create_execution("default").execution_id

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(create, range(8)))) == 8
    assert executions(db) == 8


def test_a_closed_engine_stays_closed(dsn):
    engine = Engine(dsn)
    engine.ping()
    engine.close()
    with pytest.raises(psycopg.OperationalError, match="closed"):
        engine.ping()


def test_an_engine_closed_before_its_first_call_does_not_open(dsn):
    engine = Engine(dsn)
    engine.close()
    with pytest.raises(psycopg.OperationalError):
        engine.ping()


def test_a_wrong_dsn_says_why_and_at_once(dsn):
    with Engine(f"{dsn} dbname=nowhere") as engine, pytest.raises(psycopg.OperationalError, match="nowhere"):
        engine.ping()


@pytest.mark.parametrize("engine_class", [Engine, AsyncEngine])
def test_a_source_of_another_kind_is_refused(engine_class):
    with pytest.raises(TypeError, match="DSN"):
        engine_class(object())


async def test_an_async_call_without_a_connection_is_committed_at_once(async_engine, db):
    await async_engine.create_execution("default")
    assert executions(db) == 1


async def test_an_async_call_with_a_connection_rolls_back_with_the_callers_transaction(async_engine, dsn, db):
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        await async_engine.create_execution("default", conn=conn)
        await conn.rollback()
    assert executions(db) == 0


async def test_an_async_engine_on_a_connection_joins_or_commits_like_the_sync_one(dsn, db):
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        engine = AsyncEngine(conn)
        await engine.create_execution("default")
        assert executions(db) == 1
        await conn.execute("select 1")
        await engine.create_execution("default")
        await conn.rollback()
    assert executions(db) == 1


async def test_tasks_share_an_async_engine_on_a_pool(dsn, db):
    async with AsyncConnectionPool(dsn, min_size=1, max_size=4, open=False) as pool:
        engine = AsyncEngine(pool)
        await asyncio.gather(*(engine.create_execution("default") for _ in range(8)))
    assert executions(db) == 8


async def test_tasks_share_an_async_engine_on_a_dsn(async_engine, db):
    await asyncio.gather(*(async_engine.create_execution("default") for _ in range(8)))
    assert executions(db) == 8


async def test_a_closed_async_engine_stays_closed(dsn):
    async with AsyncEngine(dsn) as engine:
        await engine.ping()
    with pytest.raises(psycopg.OperationalError, match="closed"):
        await engine.ping()


def test_an_async_engine_can_be_made_before_the_event_loop_runs(dsn):
    engine = AsyncEngine(dsn)

    async def use():
        async with engine:
            return await engine.ping()

    assert asyncio.run(use()).ok
