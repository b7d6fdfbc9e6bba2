"""The followers of one engine share one connection that LISTENs."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from contextlib import AsyncExitStack, ExitStack, aclosing, closing

import pytest
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolClosed

from pyff import AsyncEngine, Engine
from pyff.listener import AsyncWakeup, Listener, Wakeup
from tests.events.test_follow import LIMIT, SLOW, Following
from tests.sql import create, one, table
from tests.streams.support import append, attempt, where

pytestmark = pytest.mark.own_session("follows by LISTEN, and has its connections cut")

FOLLOWERS = 200


def listeners(db):
    """The sessions of this database whose last statement was LISTEN or UNLISTEN."""
    return table(
        db,
        """select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
              and query ~* '^(un)?listen '""",
    )


def sessions(db):
    return table(
        db,
        """select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
              and backend_type = 'client backend'""",
    )


def until(condition):
    deadline = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return found


def terminate(db, found):
    for row in found:
        table(db, "select pg_terminate_backend(%s, 5000)", row["pid"])


@pytest.fixture
def streams(db):
    """Attempts whose streams have one frame each."""
    made = [attempt(db) for _ in range(4)]
    for row in made:
        append(db, row, b"first")
    return made


def test_many_followers_have_one_listening_connection(db, dsn, streams):
    with Engine(dsn, max_size=2) as engine, ExitStack() as open_ones:
        for n in range(FOLLOWERS):
            following = open_ones.enter_context(
                closing(engine.tail(**where(streams[n % len(streams)]), poll_s=SLOW))
            )
            assert next(following).payload == b"first"
        until(lambda: listeners(db))
        assert len(listeners(db)) == 1
        assert len(sessions(db)) <= 3
    until(lambda: sessions(db) == [])


async def test_so_have_many_of_the_async_engine(db, dsn, streams):
    async with AsyncEngine(dsn, max_size=2) as engine, AsyncExitStack() as open_ones:
        for n in range(FOLLOWERS):
            following = await open_ones.enter_async_context(
                aclosing(engine.tail(**where(streams[n % len(streams)]), poll_s=SLOW))
            )
            assert (await anext(following)).payload == b"first"
        await asyncio.to_thread(until, lambda: listeners(db))
        assert len(listeners(db)) == 1
        assert len(sessions(db)) <= 3
    until(lambda: sessions(db) == [])


@pytest.mark.parametrize("kind", [ConnectionPool, AsyncConnectionPool])
async def test_so_have_the_followers_of_an_engine_on_a_pool(db, dsn, streams, kind):
    if kind is ConnectionPool:
        with (
            ConnectionPool(dsn, kwargs={"autocommit": True}, min_size=1, max_size=2) as pool,
            Engine(pool) as engine,
        ):
            tails = [engine.tail(**where(row), poll_s=SLOW) for row in streams]
            for following in tails:
                next(following)
            until(lambda: listeners(db))
            assert len(listeners(db)) == 1
            for following in tails:
                following.close()
            until(lambda: not listeners(db))
    else:
        async with (
            AsyncConnectionPool(dsn, kwargs={"autocommit": True}, min_size=1, max_size=2) as pool,
            AsyncEngine(pool) as engine,
        ):
            tails = [engine.tail(**where(row), poll_s=SLOW) for row in streams]
            for following in tails:
                await anext(following)
            await asyncio.to_thread(until, lambda: listeners(db))
            assert len(listeners(db)) == 1
            for following in tails:
                await following.aclose()
            await asyncio.to_thread(until, lambda: not listeners(db))


def test_each_follower_is_woken_by_its_own_channel(db, dsn, streams):
    with Engine(dsn) as engine:
        tails = [Following(engine.tail(**where(row), poll_s=SLOW)) for row in streams]
        events = Following(engine.subscribe("operator", poll_s=SLOW))
        for following in tails:
            following.wait(1)
        for n, (row, following) in enumerate(zip(streams, tails, strict=True)):
            append(db, row, b"%d" % n)
            assert following.wait(2)[1].payload == b"%d" % n
        eid = create(db)
        one(db, "ff_change_priority", execution_id=eid, priority=1)
        events.wait(1)
        assert len(listeners(db)) == 1


def test_a_follower_that_goes_away_leaves_the_others_listening(db, dsn, streams):
    with Engine(dsn) as engine:
        staying = Following(engine.tail(**where(streams[0]), poll_s=SLOW))
        staying.wait(1)
        for _ in range(3):
            with closing(engine.tail(**where(streams[1]), poll_s=SLOW)) as leaving:
                next(leaving)
            abandoned = engine.tail(**where(streams[0]), poll_s=SLOW)
            next(abandoned)
            del abandoned
            gc.collect()
        append(db, streams[0], b"second")
        staying.wait(2)
        assert len(listeners(db)) == 1


def test_the_connection_is_closed_after_the_last_follower_and_opened_for_the_next(db, dsn, streams):
    with Engine(dsn) as engine:
        for _ in range(3):
            with closing(engine.tail(**where(streams[0]), poll_s=SLOW)) as following:
                next(following)
                until(lambda: listeners(db))
            until(lambda: not listeners(db))
        follower = Following(engine.tail(**where(streams[0]), poll_s=SLOW))
        append(db, streams[0], b"second")
        follower.wait(2)


def test_after_a_lost_connection_all_followers_are_woken_again(db, dsn, streams):
    with Engine(dsn) as engine:
        tails = [Following(engine.tail(**where(row), poll_s=SLOW)) for row in streams]
        for n in range(2, 4):
            terminate(db, until(lambda: listeners(db)))
            for row in streams:  # while nothing listens
                append(db, row, b"%d" % n)
            for following in tails:
                following.wait(n)


def test_closing_the_engine_ends_its_followers(db, dsn, streams):
    before = threading.active_count()
    with Engine(dsn) as engine:
        tails = [Following(engine.tail(**where(row), poll_s=SLOW)) for row in streams]
        for following in tails:
            following.wait(1)
        until(lambda: listeners(db))
    for following in tails:
        assert following.ended.wait(LIMIT)
        assert isinstance(following.error, PoolClosed)
    with pytest.raises(PoolClosed):
        next(engine.tail(**where(streams[0])))
    until(lambda: not listeners(db))
    until(lambda: threading.active_count() <= before)


async def test_closing_the_async_engine_ends_its_followers(db, dsn, streams):
    async with AsyncEngine(dsn) as engine:

        async def follow(row):
            async for _ in engine.tail(**where(row), poll_s=SLOW):
                pass

        tasks = [asyncio.create_task(follow(row)) for row in streams]
        await asyncio.to_thread(until, lambda: listeners(db))
    done, _ = await asyncio.wait(tasks, timeout=LIMIT)
    assert [type(task.exception()) for task in done] == [PoolClosed] * len(streams)
    until(lambda: not listeners(db))


def test_a_follower_whose_loop_has_ended_stops_no_other(db, dsn):
    listener = Listener(dsn, {})
    left = AsyncWakeup(listener, ["pyff_test"])

    async def begin():
        left.__enter__()

    asyncio.run(begin())
    with Wakeup(listener, ["pyff_test"]) as staying:
        assert staying.wait(LIMIT)  # it listens
        db.execute("notify pyff_test")
        assert staying.wait(LIMIT)
    listener.close()
    until(lambda: not listeners(db))


def test_a_channel_that_cannot_be_written_stops_no_other(db, dsn):
    listener = Listener(dsn, {})
    with Wakeup(listener, ["pyff_test"]) as staying:
        assert staying.wait(LIMIT)
        with Wakeup(listener, ["\ud800"]):
            until(lambda: not listeners(db))
        assert staying.wait(LIMIT)  # it listens again
        db.execute("notify pyff_test")
        assert staying.wait(LIMIT)
    listener.close()


async def test_an_engine_whose_close_is_cancelled_keeps_no_connection(db, dsn):
    engine = AsyncEngine(dsn)
    await engine.ping()
    with engine._listener._lock:  # close waits for it, in a thread
        closing = asyncio.create_task(engine.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
    assert closing.cancelled()
    until(lambda: not sessions(db))


@pytest.mark.parametrize("kind", [Engine, AsyncEngine])
async def test_an_engine_that_is_closed_while_its_first_call_connects_keeps_no_connection(
    db, dsn, monkeypatch, kind
):
    engine = kind(dsn)
    connection = Connection if kind is Engine else AsyncConnection
    connect = connection.connect

    def closed_meanwhile(conninfo):
        monkeypatch.undo()
        engine.close()
        return connect(conninfo)

    async def closed_meanwhile_async(conninfo):
        monkeypatch.undo()
        await engine.close()
        return await connect(conninfo)

    if kind is Engine:
        monkeypatch.setattr(connection, "connect", closed_meanwhile)
        with pytest.raises(PoolClosed):
            engine.ping()
    else:
        monkeypatch.setattr(connection, "connect", closed_meanwhile_async)
        with pytest.raises(PoolClosed):
            await engine.ping()
    until(lambda: not sessions(db))


FORKS = """
import os, sys, threading
from psycopg_pool import NullConnectionPool
from pyff import Engine

execution_id, attempt_index = sys.argv[1], int(sys.argv[2])
pool = NullConnectionPool(os.environ["PYFF_DSN"], kwargs={"autocommit": True}, max_size=4, open=True)
engine = Engine(pool)
mine = engine.tail(execution_id, attempt_index, poll_s=600)
print(next(mine).payload.decode(), flush=True)
sys.stdin.readline()
child = os.fork()
following = mine if child else engine.tail(execution_id, attempt_index, poll_s=600)
if not child:
    next(following)
    del mine
print("parent" if child else "child", next(following).payload.decode(), flush=True)
if child:
    print("parent", next(following).payload.decode(), flush=True)
    os.waitpid(child, 0)
else:
    os._exit(0)
"""


def test_a_fork_has_a_listener_of_its_own(db, dsn, streams):
    place = where(streams[0])
    program = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", FORKS, place["execution_id"], str(place["attempt_index"])],
        env={**os.environ, "PYFF_DSN": dsn},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stdout.readline() == "first\n"
        until(lambda: listeners(db))
        program.stdin.write("\n")
        program.stdin.flush()
        until(lambda: len(listeners(db)) == 2)
        append(db, streams[0], b"second")
        assert sorted(program.stdout.readline() for _ in range(2)) == ["child second\n", "parent second\n"]
        until(lambda: len(listeners(db)) == 1)  # the end of the child did not end the parent's
        append(db, streams[0], b"third")
        assert program.stdout.readline() == "parent third\n"
        assert program.wait(LIMIT) == 0
