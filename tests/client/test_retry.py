"""Serialization failures and deadlocks: retried in the engine's own transaction, never in the caller's."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.errors import DeadlockDetected, SerializationFailure

from pyff import AsyncEngine, Engine, RetryExhausted

SETUP = """
create table pair (id int primary key, n int not null default 0);
insert into pair values (1), (2);
create sequence attempts;
"""

FAILS = """
create or replace function ff_now_ms() returns bigint language plpgsql volatile as $$
begin
    if nextval('attempts') <= {times} then
        raise exception using errcode = '{code}', message = 'try again';
    end if;
    return 7;
end $$
"""

UPDATES_ONE = """
create or replace function ff_now_ms() returns bigint language plpgsql volatile as $$
begin
    perform nextval('attempts');
    update pair set n = n + 1 where id = 1;
    return 7;
end $$
"""

# Takes row 1, waits at its first attempt until the other side waits for row 1, then takes row 2: a deadlock.
UPDATES_BOTH = """
create or replace function ff_now_ms() returns bigint language plpgsql volatile as $$
declare
    v_attempt bigint := nextval('attempts');
begin
    update pair set n = n + 1 where id = 1;
    while v_attempt = 1 and not exists (
        select 1 from pg_locks l join pg_stat_activity a using (pid)
        where not l.granted and a.datname = current_database()
    ) loop
        perform pg_sleep(0.005);
    end loop;
    update pair set n = n + 1 where id = 2;
    return 7;
end $$
"""


@pytest.fixture
def attempts(db):
    """How often the function was entered: a sequence does not roll back."""
    db.execute(SETUP)

    def count():
        called, value = db.execute("select is_called, last_value from attempts").fetchone()
        return value if called else 0

    return count


def numbers(db):
    return [n for (n,) in db.execute("select n from pair order by id")]


def wait_until_a_session_waits(db, wait_event):
    """Until a session in this database waits for a lock, or sleeps."""
    query = """
        select 1 from pg_stat_activity
        where datname = current_database() and %s in (wait_event_type, wait_event)
    """
    deadline = time.monotonic() + 90
    while not db.execute(query, [wait_event]).fetchone():
        assert time.monotonic() < deadline, "no session waits"
        time.sleep(0.002)


@pytest.fixture
def repeatable(dsn):
    return make_conninfo(
        dsn, options=r"-c default_transaction_isolation=repeatable\ read -c statement_timeout=90s"
    )


@pytest.fixture
def impatient(dsn):
    """Finds a deadlock at once, so that it is this side which gives way."""
    return make_conninfo(dsn, options="-c deadlock_timeout=20ms -c statement_timeout=90s")


@pytest.mark.own_session("connects with options")
def test_a_real_serialization_failure_is_retried(repeatable, connect, db, attempts):
    db.execute(UPDATES_ONE)
    with Engine(repeatable) as engine, ThreadPoolExecutor(1) as thread:
        other = connect(autocommit=False)
        other.execute("update pair set n = 100 where id = 1")
        call = thread.submit(engine.now_ms)
        wait_until_a_session_waits(db, "Lock")
        other.commit()
        assert call.result(90) == 7
    assert attempts() == 2
    assert numbers(db) == [101, 0]


@pytest.mark.own_session("connects with options")
async def test_a_real_serialization_failure_is_retried_by_the_async_engine(repeatable, connect, db, attempts):
    db.execute(UPDATES_ONE)
    async with AsyncEngine(repeatable) as engine:
        other = connect(autocommit=False)
        other.execute("update pair set n = 100 where id = 1")
        call = asyncio.create_task(engine.now_ms())
        await asyncio.to_thread(wait_until_a_session_waits, db, "Lock")
        other.commit()
        assert await call == 7
    assert attempts() == 2
    assert numbers(db) == [101, 0]


REPLACED = "raise exception using errcode = 'XX000', message = 'cache lookup failed for function 16384'"


def test_a_call_whose_function_is_replaced_at_that_moment_is_made_again(dsn, db, attempts):
    """PostgreSQL has no lock on a function that is about to run: an upgrade may drop an older signature of it."""
    raising = FAILS.format(times=2, code="40001")
    db.execute(raising.replace("raise exception using errcode = '40001', message = 'try again'", REPLACED))
    with Engine(dsn) as engine:
        assert engine.now_ms() == 7
    assert attempts() == 3


def test_any_other_internal_error_is_not_made_again(dsn, db, attempts):
    db.execute(FAILS.format(times=1, code="XX000"))
    with Engine(dsn) as engine, pytest.raises(psycopg.errors.InternalError_, match="try again"):
        engine.now_ms()
    assert attempts() == 1


@pytest.mark.own_session("connects with options")
def test_a_real_deadlock_is_retried(impatient, connect, db, attempts):
    db.execute(UPDATES_BOTH)
    with Engine(impatient) as engine, ThreadPoolExecutor(1) as thread:
        other = connect(autocommit=False)
        other.execute("set deadlock_timeout = '90s'; update pair set n = 100 where id = 2")
        call = thread.submit(engine.now_ms)
        wait_until_a_session_waits(db, "PgSleep")
        other.execute("update pair set n = 100 where id = 1")
        other.commit()
        assert call.result(90) == 7
    assert attempts() == 2
    assert numbers(db) == [101, 101]


@pytest.mark.own_session("connects with options")
async def test_a_real_deadlock_is_retried_by_the_async_engine(impatient, connect, db, attempts):
    db.execute(UPDATES_BOTH)
    async with AsyncEngine(impatient) as engine:
        other = connect(autocommit=False)
        other.execute("set deadlock_timeout = '90s'; update pair set n = 100 where id = 2")
        call = asyncio.create_task(engine.now_ms())
        await asyncio.to_thread(wait_until_a_session_waits, db, "PgSleep")
        await asyncio.to_thread(other.execute, "update pair set n = 100 where id = 1")
        other.commit()
        assert await call == 7
    assert attempts() == 2


def test_a_retry_sends_what_the_first_try_sent(engine, db, attempts):
    """Arguments are read once: an iterator has nothing left for the second try."""
    db.execute(FAILS.format(times=1, code="40001"))
    made = engine.create_executions("l", (payload for payload in [b"a", b"b"]))
    assert [row.outcome for row in made] == ["created", "created"]
    assert attempts() > 1


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_the_third_retry_may_still_succeed(engine, db, attempts, code):
    db.execute(FAILS.format(times=3, code=code))
    assert engine.now_ms() == 7
    assert attempts() == 4


@pytest.mark.parametrize(("code", "cause"), [("40001", SerializationFailure), ("40P01", DeadlockDetected)])
def test_after_three_retries_the_engine_gives_up(engine, db, attempts, code, cause):
    db.execute(FAILS.format(times=99, code=code))
    with pytest.raises(RetryExhausted) as caught:
        engine.now_ms()
    assert attempts() == 4
    assert isinstance(caught.value.__cause__, cause)
    assert caught.value.retryable
    assert caught.value.detail == {"kind": "retry_exhausted", "sqlstate": code, "attempts": 4}


async def test_after_three_retries_the_async_engine_gives_up(async_engine, db, attempts):
    db.execute(FAILS.format(times=99, code="40001"))
    with pytest.raises(RetryExhausted) as caught:
        await async_engine.now_ms()
    assert attempts() == 4
    assert isinstance(caught.value.__cause__, SerializationFailure)


def test_inside_the_callers_transaction_nothing_is_retried(engine, connect, db, attempts):
    db.execute(FAILS.format(times=99, code="40001"))
    with pytest.raises(SerializationFailure):
        engine.now_ms(conn=connect(autocommit=False))
    assert attempts() == 1


def test_a_connection_inside_a_transaction_is_not_retried_either(connect, db, attempts):
    db.execute(FAILS.format(times=99, code="40P01"))
    conn = connect()
    engine = Engine(conn)
    with pytest.raises(DeadlockDetected), conn.transaction():
        engine.now_ms()
    assert attempts() == 1


@pytest.mark.parametrize("autocommit", [True, False])
def test_an_idle_connection_is_retried(connect, db, attempts, autocommit):
    db.execute(FAILS.format(times=2, code="40001"))
    assert Engine(connect(autocommit=autocommit)).now_ms() == 7
    assert attempts() == 3


def test_other_errors_are_not_retried(engine, db, attempts):
    db.execute(FAILS.format(times=99, code="23505"))
    with pytest.raises(psycopg.errors.UniqueViolation):
        engine.now_ms()
    assert attempts() == 1
