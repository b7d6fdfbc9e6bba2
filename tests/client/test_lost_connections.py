"""Connections that are lost, refused or time out: before a call, during it, and at its commit."""

import asyncio
import os
import pickle
import socket

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from pyff import (
    AsyncEngine,
    AsyncHandle,
    ConnectionLost,
    Engine,
    EngineError,
    Handle,
    Token,
    errors,
    send_signal,
)
from pyff.codecs import codec_of

EXECUTION = "{fp:0}:00000000-0000-7000-8000-000000000000"

DIES = """
create or replace function ff_now_ms() returns bigint language plpgsql volatile as $$
begin
    perform pg_terminate_backend(pg_backend_pid());
    perform pg_sleep(30);
    return 7;
end $$
"""

DIES_AT_COMMIT = """
create table touched (id int);
create function die() returns trigger language plpgsql as $$
begin
    perform pg_terminate_backend(pg_backend_pid());
    perform pg_sleep(30);
    return null;
end $$;
create constraint trigger die after insert on touched deferrable initially deferred
    for each row execute function die();
create or replace function ff_now_ms() returns bigint language plpgsql volatile as $$
begin
    insert into touched values (1);
    return 7;
end $$
"""

SLEEPS = """
create or replace function ff_now_ms() returns bigint language plpgsql volatile as $$
begin
    perform pg_sleep(30);
    return 7;
end $$
"""


@pytest.fixture
def hang_up(db):
    """Ends every other connection to this test's database, and waits until they are gone."""

    def end() -> None:
        db.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )

    return end


@pytest.fixture
def refusing():
    """The conninfo of a port that refuses: it is taken, and nothing listens on it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield make_conninfo(host="127.0.0.1", port=taken.getsockname()[1], dbname="nowhere")


class Sync:
    """Calls ff_now_ms by the engine."""

    def by_dsn(self, dsn):
        with Engine(dsn) as engine:
            return engine.now_ms()

    def by_pool(self, dsn, *, autocommit=True, busy=False):
        with ConnectionPool(
            dsn,
            kwargs={"autocommit": autocommit},
            min_size=1,
            max_size=1,
            timeout=0.1 if busy else 30,
            open=True,
        ) as pool:
            taken = pool.getconn() if busy else None
            try:
                return Engine(pool).now_ms()
            finally:
                if taken is not None:
                    pool.putconn(taken)

    def by_connection(self, dsn, *, autocommit=True, join=False, check_schema=True, before=lambda conn: None):
        conn = psycopg.connect(dsn, autocommit=autocommit)
        try:
            engine = Engine(dsn if join else conn, check_schema=check_schema)
            before(conn)
            return engine.now_ms(conn=conn if join else None)
        finally:
            conn.close()

    def by_handle(self, dsn, verb, *args):
        with Engine(dsn) as engine:
            return getattr(Handle(EXECUTION, codec_of(int), engine), verb)(*args)


class Async:
    def by_dsn(self, dsn):
        async def call():
            async with AsyncEngine(dsn) as engine:
                return await engine.now_ms()

        return asyncio.run(call())

    def by_pool(self, dsn, *, autocommit=True, busy=False):
        async def call():
            async with AsyncConnectionPool(
                dsn, kwargs={"autocommit": autocommit}, min_size=1, max_size=1, timeout=0.1 if busy else 30
            ) as pool:
                taken = await pool.getconn() if busy else None
                try:
                    return await AsyncEngine(pool).now_ms()
                finally:
                    if taken is not None:
                        await pool.putconn(taken)

        return asyncio.run(call())

    def by_connection(self, dsn, *, autocommit=True, join=False, check_schema=True, before=lambda conn: None):
        async def call():
            conn = await psycopg.AsyncConnection.connect(dsn, autocommit=autocommit)
            try:
                engine = AsyncEngine(dsn if join else conn, check_schema=check_schema)
                before(conn)
                return await engine.now_ms(conn=conn if join else None)
            finally:
                await conn.close()

        return asyncio.run(call())

    def by_handle(self, dsn, verb, *args):
        async def call():
            async with AsyncEngine(dsn) as engine:
                return await getattr(AsyncHandle(EXECUTION, codec_of(int), engine), verb)(*args)

        return asyncio.run(call())


@pytest.fixture(params=[Sync, Async])
def calling(request):
    return request.param()


def test_a_lost_connection_is_an_error_of_the_engine_and_of_psycopg(calling, refusing):
    with pytest.raises(ConnectionLost) as lost:
        calling.by_dsn(refusing)
    assert isinstance(lost.value, EngineError)
    assert isinstance(lost.value, psycopg.OperationalError)
    assert ConnectionLost is errors.ConnectionLost
    assert lost.value.retryable
    assert lost.value.kind == lost.value.detail["kind"] == "connection_lost"
    assert "refused" in lost.value.message
    assert isinstance(lost.value.__cause__, psycopg.OperationalError)


def test_a_refused_connection_cannot_have_run_the_call(calling, refusing):
    with pytest.raises(ConnectionLost) as lost:
        calling.by_dsn(refusing)
    assert not lost.value.may_have_run
    assert lost.value.sqlstate == ""


def test_nor_can_one_to_a_database_that_does_not_exist(calling, dsn):
    with pytest.raises(ConnectionLost, match="does not exist") as lost:
        calling.by_dsn(make_conninfo(dsn, dbname="pyff_test_nowhere"))
    assert not lost.value.may_have_run


def test_nor_can_a_pool_that_has_no_connection_to_give(calling, dsn):
    with pytest.raises(ConnectionLost) as lost:
        calling.by_pool(dsn, busy=True)
    assert not lost.value.may_have_run
    assert isinstance(lost.value.__cause__, PoolTimeout)


def test_nor_can_a_connection_that_was_closed_before(calling, dsn):
    with pytest.raises(ConnectionLost) as lost:
        calling.by_connection(dsn, before=lambda conn: conn.pgconn.finish())
    assert not lost.value.may_have_run


@pytest.mark.parametrize("way", ["by_dsn", "by_pool", "by_connection"])
def test_a_backend_that_is_killed_during_the_call_may_have_run_it(calling, db, dsn, way):
    db.execute(DIES)
    with pytest.raises(ConnectionLost) as lost:
        getattr(calling, way)(dsn)
    assert lost.value.may_have_run
    assert lost.value.sqlstate == "57P01"


@pytest.mark.parametrize("way", ["by_pool", "by_connection"])
def test_so_may_one_that_is_killed_at_the_commit(calling, db, dsn, way):
    db.execute(DIES_AT_COMMIT)
    with pytest.raises(ConnectionLost) as lost:
        getattr(calling, way)(dsn, autocommit=False)
    assert lost.value.may_have_run
    assert lost.value.sqlstate == "57P01"


@pytest.mark.own_session("the socket of the connection is shut down")
def test_so_may_a_call_whose_socket_is_cut_in_the_middle(calling, dsn):
    def cut(conn):
        """The request goes out, and no answer can come in."""
        with socket.socket(fileno=os.dup(conn.fileno())) as end:
            end.shutdown(socket.SHUT_RD)

    for checks_first in (False, True):
        with pytest.raises(ConnectionLost) as lost:
            calling.by_connection(dsn, check_schema=checks_first, before=cut)
        assert lost.value.may_have_run == (not checks_first)
        assert lost.value.sqlstate == ""


def test_a_call_in_a_transaction_of_the_caller_is_rolled_back_with_it(calling, db, dsn):
    db.execute(DIES)
    with pytest.raises(ConnectionLost) as lost:
        calling.by_connection(dsn, autocommit=False, join=True)
    assert not lost.value.may_have_run
    with pytest.raises(ConnectionLost) as lost:
        calling.by_connection(dsn, autocommit=True, join=True)
    assert lost.value.may_have_run


@pytest.mark.own_session("its session is ended by the server")
@pytest.mark.parametrize(
    ("setting", "sqlstate"),
    [
        ("idle_in_transaction_session_timeout", "25P03"),
        ("idle_session_timeout", "57P05"),
        ("transaction_timeout", "25P04"),
    ],
)
def test_a_session_that_the_server_ended_by_a_timeout_is_a_lost_connection(
    calling, db, dsn, setting, sqlstate
):
    if not db.execute("select 1 from pg_settings where name = %s", [setting]).fetchone():
        pytest.skip("a setting of newer servers")

    def idle(conn):
        """In a transaction, or without one, until the server ends the session."""
        begin = "" if setting == "idle_session_timeout" else "begin; "
        conn.pgconn.exec_(f"set {setting} = '1ms'; {begin}select 1".encode())
        while db.execute("select 1 from pg_stat_activity where pid = %s", [conn.info.backend_pid]).fetchone():
            pass

    with pytest.raises(ConnectionLost) as lost:
        calling.by_connection(dsn, check_schema=False, before=idle)
    assert lost.value.sqlstate in {sqlstate, ""}  # psycopg does not always read what the server sent last
    assert lost.value.may_have_run == (setting == "idle_session_timeout")


def test_an_aborted_pipeline_is_no_lost_connection(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        engine = Engine(conn, check_schema=False)
        with conn.pipeline():
            with pytest.raises(psycopg.errors.DivisionByZero):
                conn.execute("select 1 / 0").fetchall()
            with pytest.raises(psycopg.errors.PipelineAborted) as aborted:
                engine.ping()
    assert not isinstance(aborted.value, EngineError)


@pytest.mark.own_session("connects with options")
def test_a_statement_that_takes_too_long_is_no_lost_connection(calling, db, dsn):
    db.execute(SLEEPS)
    with pytest.raises(psycopg.errors.QueryCanceled) as cancelled:
        calling.by_dsn(make_conninfo(dsn, options="-c statement_timeout=50ms"))
    assert not isinstance(cancelled.value, EngineError)


@pytest.mark.parametrize("call", [("state",), ("describe",), ("cancel",), ("result", 0.1)])
def test_a_handle_raises_it_too(calling, refusing, call):
    with pytest.raises(ConnectionLost) as lost:
        calling.by_handle(refusing, *call)
    assert not lost.value.may_have_run


def test_send_signal_raises_it_too(refusing):
    token = Token(EXECUTION, "00000000-0000-7000-8000-000000000000", "k:1")
    with pytest.raises(ConnectionLost) as lost:
        send_signal(token, "go", conn=refusing)
    assert not lost.value.may_have_run


def test_it_survives_pickling():
    lost = pickle.loads(pickle.dumps(ConnectionLost("gone", may_have_run=True, sqlstate="57P01")))  # noqa: S301
    assert (lost.message, lost.may_have_run, lost.sqlstate) == ("gone", True, "57P01")


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
    for _ in range(2):
        with pytest.raises(ConnectionLost):
            engine.ping()
