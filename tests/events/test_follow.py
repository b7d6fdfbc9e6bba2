"""engine.subscribe and engine.tail: woken by notifications, polling without them, continuing after interruptions."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from pathlib import Path

import psycopg
import psycopg_pool
import pytest
from psycopg.conninfo import make_conninfo

import pyff
from pyff import AsyncEngine, AsyncStoredCursor, CursorMoved, Engine, StoredCursor
from pyff.follow import Patience
from tests.events.support import cycle, read, settle
from tests.pgbouncer import pooled
from tests.sql import create, one, table
from tests.streams.support import append, attempt, where

pytestmark = pytest.mark.own_session("follows by LISTEN, and has its connections cut")

SLOW = 600.0  # seconds between polls: anything earlier was notified
LIMIT = 90.0  # seconds that no test takes


@pytest.fixture
def engine(dsn):
    with Engine(dsn) as engine:
        yield engine


class Following:
    """An iterator that another thread reads; `wait` for what it has read."""

    def __init__(self, iterator):
        self.got = []
        self.error = None
        self.ended = threading.Event()
        self._arrived = threading.Condition()
        threading.Thread(target=self._run, args=[iterator], daemon=True).start()

    def _run(self, iterator):
        try:
            for item in iterator:
                with self._arrived:
                    self.got.append(item)
                    self._arrived.notify_all()
        except Exception as error:
            self.error = error
        finally:
            self.ended.set()

    def wait(self, count):
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self.got) >= count, LIMIT), (self.got, self.error)
        return self.got


def listening(db, what="listen"):
    """Waits until a session of this database has LISTENed and no session runs a query."""
    query = """select pid from pg_stat_activity where datname = current_database() and state = 'idle'
                and query ilike %s and pid <> pg_backend_pid()"""
    until = time.monotonic() + LIMIT
    while not (found := table(db, query, f"{what}%")):
        assert time.monotonic() < until
    return found[-1]["pid"]


def idle_reader(db):
    """Waits until the engine's reader has read to the end and sleeps."""
    query = """select 1 from pg_stat_activity where datname = current_database() and state = 'idle'
                and query like %s"""
    until = time.monotonic() + LIMIT
    while not table(db, query, "%ff_read_events%") and not table(db, query, "%ff_stream_info%"):
        assert time.monotonic() < until


def test_what_is_there_comes_first_and_then_what_happens(db, engine):
    eid = create(db)
    one(db, "ff_change_priority", execution_id=eid, priority=1)
    follower = Following(engine.subscribe("operator", poll_s=SLOW))
    follower.wait(1)
    listening(db)
    for n in (2, 3, 4):
        one(db, "ff_change_priority", execution_id=eid, priority=n)
        assert follower.wait(n)[-1].details == {"old": n - 1, "new": n}
    cursors = [event.cursor for event in follower.got]
    assert list(engine.subscribe("operator", after=cursors[1], follow=False)) == follower.got[2:]


def test_without_a_notification_it_polls(db, engine):
    follower = Following(engine.subscribe("completion", poll_s=0.02))
    cycle(db)  # notifies by tick, and no tick runs
    assert follower.wait(1)[0].event_type == "success"


def test_an_event_that_rang_too_early_is_read_soon_after_it_is_released(db, engine, connect):
    """A running writer holds the event back at the notification; its end does not notify."""
    follower = Following(engine.subscribe("operator", poll_s=SLOW))
    listening(db)
    holder = connect(autocommit=False)
    holder.execute("select pg_current_xact_id()")
    eid = create(db)
    one(db, "ff_change_priority", execution_id=eid, priority=1)
    time.sleep(0.2)
    assert follower.got == []
    holder.rollback()
    assert len(follower.wait(1)) == 1


def test_a_reader_whose_connections_are_cut_goes_on_from_its_cursor(db, engine):
    eid = create(db)
    follower = Following(engine.subscribe("operator", poll_s=0.05))
    for n in range(1, 6):
        one(db, "ff_change_priority", execution_id=eid, priority=n)
        follower.wait(n)
        table(
            db,
            """select pg_terminate_backend(pid) from pg_stat_activity
                where datname = current_database() and application_name = 'pyff'""",
        )
    one(db, "ff_change_priority", execution_id=eid, priority=9)
    assert [event.details["new"] for event in follower.wait(6)] == [1, 2, 3, 4, 5, 9]


def test_a_cut_listener_listens_again(db, engine):
    eid = create(db)
    follower = Following(engine.subscribe("operator", poll_s=1.0))
    for n in range(1, 4):
        pid = listening(db)
        one(db, "ff_change_priority", execution_id=eid, priority=n)
        follower.wait(n)
        table(db, "select pg_terminate_backend(%s)", pid)
        until = time.monotonic() + LIMIT
        while listening(db) == pid:
            assert time.monotonic() < until
    assert len(follower.got) == 3


def test_it_gives_up_when_its_patience_is_over(tmp_path):
    began = time.monotonic()
    with Engine(make_conninfo("", host=str(tmp_path), dbname="x")) as engine:
        follower = Following(engine.subscribe("operator", poll_s=0.01, patience_s=0.2))
        assert follower.ended.wait(LIMIT)
    assert isinstance(follower.error, psycopg.OperationalError)
    assert time.monotonic() - began >= 0.2


def test_a_closed_engine_is_not_waited_for(db, engine):
    follower = Following(engine.subscribe("operator", poll_s=0.01, patience_s=SLOW))
    idle_reader(db)
    engine.close()
    assert follower.ended.wait(LIMIT)
    assert isinstance(follower.error, psycopg_pool.PoolClosed)


@pytest.mark.parametrize("wrong", [{"dbname": "nonsense"}, {"user": "nonsense"}])
def test_a_server_that_refuses_the_connection_is_not_asked_again(dsn, wrong):
    with Engine(make_conninfo(dsn, **wrong)) as engine:
        follower = Following(engine.subscribe("operator", patience_s=SLOW))
        assert follower.ended.wait(LIMIT)
        assert isinstance(follower.error, psycopg.OperationalError)
        follower = Following(engine.tail("{ff:0}:00000000-0000-0000-0000-000000000000", 0, patience_s=SLOW))
        assert follower.ended.wait(LIMIT)
        assert isinstance(follower.error, psycopg.OperationalError)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ('FATAL:  password authentication failed for user "x"', False),
        ('FATAL:  no pg_hba.conf entry for host "[local]", user "x"', False),
        ('FATAL:  permission denied for database "x"', False),
        ("fe_sendauth: no password supplied", False),
        ("FATAL:  the database system is starting up", True),
        ("FATAL:  sorry, too many clients already", True),
        ("Connection refused", True),
        ("the connection is lost", True),
    ],
)
def test_what_is_worth_another_try(text, again):
    error = psycopg.OperationalError(f"connection failed: connection to server at x failed: {text}")
    assert Patience(SLOW).allows(error) is again


def test_filters_and_watermarks(db, engine):
    for n in range(6):
        cycle(db, namespace="a" if n == 5 else "b")
    settle(db)
    found = list(engine.subscribe("completion", namespace="a", follow=False))
    assert [event.namespace for event in found] == ["a"]
    marks = list(engine.subscribe("completion", namespace="nobody", follow=False, watermarks=True))
    assert [mark.event_type for mark in marks] == ["watermark"]
    assert list(engine.subscribe("completion", after=marks[-1].cursor, follow=False)) == []
    everything = list(engine.subscribe(follow=False, limit=4))
    assert [e.event_id for e in everything] == [e["event_id"] for e in read(db)]
    assert len(list(engine.subscribe(follow=False, limit=4, watermarks=True))) == 18 + 5
    assert list(engine.subscribe(after="now", follow=False)) == []


def test_a_subscription_of_all_families_can_always_be_resumed(db, engine):
    """Families are trimmed to different places. From None it starts where all of them are whole."""
    cycle(db)
    cycle(db)
    one(db, "ff_set_event_family", family="lease", retention_ms=0)
    settle(db)
    assert one(db, "ff_trim_events", limit=3)["processed"] == 3
    found = list(engine.subscribe(follow=False))
    assert [event.event_type for event in found] == ["released", "success"]
    for event in found:
        list(engine.subscribe(after=event.cursor, follow=False))
    with pytest.raises(pyff.CursorExpired) as caught:
        list(engine.subscribe("lease", after="e1.0.0.0", follow=False))
    assert caught.value.detail["oldest_cursor"] == one(db, "ff_event_cursor", at="oldest")["cursor"]


def test_a_page_of_all_families_from_the_start_may_have_cursors_that_expired(db, engine):
    """Cursors of families with longer retention are valid for their own family only."""
    cycle(db)
    cycle(db)
    one(db, "ff_set_event_family", family="lease", retention_ms=0)
    settle(db)
    one(db, "ff_trim_events", limit=3)
    page = engine.read_events(limit=1)
    assert [event.event_type for event in page] == ["success"]
    with pytest.raises(pyff.CursorExpired):
        engine.read_events(after=page[0].cursor)
    assert len(engine.read_events(family="completion", after=page[0].cursor)) == 1
    assert len(list(engine.subscribe("completion", follow=False))) == 2
    assert [e.event_type for e in engine.subscribe(follow=False)] == ["released", "success"]


@pytest.mark.parametrize("family", [None, "lease"])
def test_a_refusal_is_raised_as_it_is(engine, family):
    with pytest.raises(pyff.InvalidCursor):
        list(engine.subscribe(family, after="nonsense"))
    with pytest.raises(pyff.InvalidInput):
        list(engine.subscribe("nonsense"))


@pytest.mark.parametrize("limit", [0, -1])
def test_it_cannot_read_no_rows_at_a_time(engine, limit):
    with pytest.raises(ValueError, match="limit"):
        engine.subscribe(limit=limit)
    with pytest.raises(ValueError, match="limit"):
        engine.tail("x", 0, limit=limit)


def test_a_pool_and_a_connection_of_the_callers(dsn, db):
    cycle(db)
    settle(db)
    with psycopg_pool.ConnectionPool(dsn, min_size=1, kwargs={"autocommit": True}) as pool:
        follower = Following(Engine(pool).subscribe("operator", poll_s=SLOW))
        listening(db)
        one(db, "ff_set_lane_state", lane_id="x", state="paused")
        assert len(follower.wait(1)) == 1
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert len(list(Engine(conn).subscribe(follow=False))) == 4
        follower = Following(Engine(conn).subscribe("operator", poll_s=0.02))
        one(db, "ff_set_lane_state", lane_id="x", state="active")
        follower.wait(2)
        table(db, "select pg_terminate_backend(%s)", conn.info.backend_pid)
        assert follower.ended.wait(LIMIT)  # a connection of the caller cannot be reopened
        assert isinstance(follower.error, psycopg.OperationalError)


def test_behind_a_pooler_it_polls_and_never_listens(db, dsn):
    with pooled(dsn) as through, Engine(through, prepare_threshold=None) as engine:
        follower = Following(engine.subscribe("operator", poll_s=0.02))
        row = attempt(db)
        frames = Following(engine.tail(row["execution_id"], 0, poll_s=0.02))
        for n in range(20):
            one(db, "ff_change_priority", execution_id=row["execution_id"], priority=n + 1)
            append(db, row, b"%d" % n)
        assert [event.details["new"] for event in follower.wait(20)] == list(range(1, 21))
        one(db, "ff_complete", handle=row["handle"])
        assert frames.ended.wait(LIMIT)
        assert [frame.payload for frame in frames.got] == [b"%d" % n for n in range(20)]
        assert table(db, "select watch_until_ms from ff_stream_meta") == [{"watch_until_ms": None}]
        query = "select 1 from pg_stat_activity where datname = current_database() and query ilike 'listen%%'"
        assert table(db, query) == []


class TestTail:
    def test_frames_come_as_they_are_written_and_the_close_ends_it(self, db, engine):
        row = attempt(db)
        append(db, row, b"0")
        follower = Following(engine.tail(row["execution_id"], 0, poll_s=SLOW))
        follower.wait(1)
        listening(db)
        for n in range(1, 5):
            append(db, row, b"%d" % n)
        follower.wait(5)
        one(db, "ff_complete", handle=row["handle"])
        assert follower.ended.wait(LIMIT)
        assert follower.error is None
        assert [frame.payload for frame in follower.got] == [b"0", b"1", b"2", b"3", b"4"]

    def test_a_closed_stream_is_read_to_its_end(self, db, engine):
        row = attempt(db)
        ids = [append(db, row, b"%d" % n)["frame_id"] for n in range(7)]
        one(db, "ff_complete", handle=row["handle"])
        assert [frame.frame_id for frame in engine.tail(row["execution_id"], 0, limit=3)] == ids
        assert [frame.frame_id for frame in engine.tail(row["execution_id"], 0, after=ids[4])] == ids[5:]

    def test_an_attempt_that_wrote_nothing_ends_too(self, db, engine):
        row = attempt(db)
        follower = Following(engine.tail(row["execution_id"], 0, poll_s=SLOW))
        listening(db)
        idle_reader(db)
        one(db, "ff_complete", handle=row["handle"])
        assert follower.ended.wait(LIMIT)
        assert (follower.got, follower.error) == ([], None)

    def test_invisible_frames_do_not_keep_it_from_ending(self, db, engine):
        row = attempt(db)
        append(db, row, b"durable")
        append(db, row, b"live", mode="best_effort_live")
        one(db, "ff_complete", handle=row["handle"])
        found = list(engine.tail(row["execution_id"], 0, visibility="exclude_best_effort"))
        assert [frame.payload for frame in found] == [b"durable"]

    def test_it_can_stop_at_what_is_there(self, db, engine):
        row = attempt(db)
        append(db, row)
        assert len(list(engine.tail(row["execution_id"], 0, follow=False))) == 1
        assert table(db, "select watch_until_ms from ff_stream_meta") == [{"watch_until_ms": None}]

    @pytest.mark.parametrize(
        ("poll_s", "ttl_ms"), [(1.0, 60_000), (SLOW, 2000 * SLOW), (1_000_000, 86_400_000)]
    )
    def test_it_watches_while_it_listens_and_longer_than_it_waits(self, db, engine, poll_s, ttl_ms):
        row = attempt(db)
        follower = Following(engine.tail(row["execution_id"], 0, poll_s=poll_s))
        listening(db)
        idle_reader(db)
        (meta,) = table(db, "select watch_until_ms - ff_now_ms() as left from ff_stream_meta")
        assert ttl_ms - 30_000 < meta["left"] <= ttl_ms
        one(db, "ff_complete", handle=row["handle"])
        assert follower.ended.wait(LIMIT)
        until = time.monotonic() + LIMIT
        query = "select 1 from pg_stat_activity where datname = current_database() and query ilike 'listen%%'"
        while table(db, query):  # the listener's connection is gone with the iterator
            assert time.monotonic() < until

    def test_a_session_that_may_only_read_polls(self, db, dsn):
        row = attempt(db)
        with Engine(make_conninfo(dsn, options="-c default_transaction_read_only=on")) as engine:
            follower = Following(engine.tail(row["execution_id"], 0, poll_s=0.02))
            for n in range(1, 4):
                append(db, row, b"%d" % n)
                follower.wait(n)
            one(db, "ff_complete", handle=row["handle"])
            assert follower.ended.wait(LIMIT)
        assert follower.error is None
        assert [frame.payload for frame in follower.got] == [b"1", b"2", b"3"]

    def test_unknown_attempts(self, db, engine):
        row = attempt(db)
        with pytest.raises(pyff.AttemptNotFound):
            list(engine.tail(row["execution_id"], 5))
        with pytest.raises(pyff.InvalidExecutionId):
            list(engine.tail("nonsense", 0))

    def test_a_cut_connection_does_not_end_it(self, db, engine):
        row = attempt(db)
        follower = Following(engine.tail(row["execution_id"], 0, poll_s=0.05))
        for n in range(1, 5):
            append(db, row, b"%d" % n)
            follower.wait(n)
            table(
                db,
                """select pg_terminate_backend(pid) from pg_stat_activity
                    where datname = current_database() and application_name = 'pyff'""",
            )
        one(db, "ff_complete", handle=row["handle"])
        assert follower.ended.wait(LIMIT)
        assert [frame.payload for frame in follower.got] == [b"1", b"2", b"3", b"4"]
        assert follower.error is None


class TestAsync:
    async def test_subscribe(self, db, dsn):
        async with AsyncEngine(dsn) as engine:
            eid = create(db)

            async def first(count):
                found = []
                async with aclosing(engine.subscribe("operator", poll_s=SLOW)) as events:
                    async for event in events:
                        found.append(event.details["new"])
                        if len(found) == count:
                            break
                return found

            reading = asyncio.create_task(first(3))
            for n in (1, 2, 3):
                await asyncio.to_thread(listening, db)
                await asyncio.to_thread(one, db, "ff_change_priority", execution_id=eid, priority=n)
            assert await asyncio.wait_for(reading, LIMIT) == [1, 2, 3]

    async def test_tail(self, db, dsn):
        row = attempt(db)
        async with AsyncEngine(dsn) as engine:

            async def everything():
                return [frame.payload async for frame in engine.tail(**where(row), poll_s=SLOW)]

            reading = asyncio.create_task(everything())
            await asyncio.to_thread(listening, db)
            for n in range(3):
                await asyncio.to_thread(append, db, row, b"%d" % n)
            await asyncio.to_thread(one, db, "ff_complete", handle=row["handle"])
            assert await asyncio.wait_for(reading, LIMIT) == [b"0", b"1", b"2"]

    @pytest.mark.parametrize("call", ["read_events", "tail_stream"])
    async def test_a_cancel_that_got_lost_on_the_way_ends_it_all_the_same(self, db, dsn, monkeypatch, call):
        """As asyncio.wait_for does it on Python 3.11: the wait ends well, and the cancel is forgotten."""
        row = attempt(db)
        async with AsyncEngine(dsn) as engine:
            original = getattr(engine, call)

            async def lose_notification(*args, **options):
                found = await original(*args, **options)
                asyncio.current_task().cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
                return found

            monkeypatch.setattr(engine, call, lose_notification)

            async def follow():
                following = (
                    engine.subscribe("operator", poll_s=SLOW)
                    if call == "read_events"
                    else engine.tail(**where(row), poll_s=SLOW)
                )
                async with aclosing(following):
                    return [item async for item in following]

            reading = asyncio.create_task(follow())
            await asyncio.wait([reading], timeout=LIMIT)
            assert reading.cancelled()

    async def test_a_task_that_was_cancelled_before_may_still_read_to_the_end(self, db, dsn):
        cycle(db)
        settle(db)
        async with AsyncEngine(dsn) as engine:

            async def clean_up():
                with suppress(asyncio.CancelledError):
                    asyncio.current_task().cancel()
                    await asyncio.sleep(0)
                return [event async for event in engine.subscribe("completion", follow=False)]

            assert len(await asyncio.create_task(clean_up())) == 1

    async def test_a_stored_cursor(self, db, dsn):
        cycle(db)
        cycle(db)
        settle(db)
        stored = AsyncStoredCursor("a", table="public.my_cursors")
        async with AsyncEngine(dsn) as engine, await psycopg.AsyncConnection.connect(dsn) as mine:
            await stored.create_table(mine)
            seen = []
            async for event in engine.subscribe("completion", after=await stored.load(mine), follow=False):
                async with stored.advance(mine, event.cursor):
                    seen.append(event.cursor)
            assert len(seen) == 2
            assert await stored.load(mine) == seen[-1]
        assert table(db, "select * from my_cursors") == [{"name": "a", "cursor": seen[-1]}]


class TestStoredCursor:
    @pytest.fixture(params=[True, False], ids=["autocommit", "transactions"])
    def mine(self, connect, request):
        conn = connect(autocommit=request.param)
        conn.execute("create table done (event_id bigint primary key)")
        conn.commit()
        StoredCursor("r").create_table(conn)
        StoredCursor("r").create_table(conn)
        return conn

    def consume(self, engine, mine, stored, crash_at=()):
        for event in engine.subscribe("completion", after=stored.load(mine), follow=False):
            with stored.advance(mine, event.cursor):
                mine.execute("insert into done values (%s)", [event.event_id])
                if event.event_id in crash_at:
                    raise ZeroDivisionError

    def test_the_effect_and_the_cursor_are_committed_together_or_not_at_all(self, db, engine, mine):
        for _ in range(4):
            cycle(db)
        settle(db)
        ids = [event["event_id"] for event in read(db, "completion")]
        for n, event_id in enumerate(ids):
            with pytest.raises(ZeroDivisionError):
                self.consume(engine, mine, StoredCursor("r"), {event_id})
            assert [r["event_id"] for r in table(db, "select event_id from done order by 1")] == ids[:n]
            cursor = table(db, "select cursor from pyff_cursor")[0]["cursor"]
            assert cursor == (read(db, "completion")[n - 1]["cursor"] if n else None)
            self.consume(engine, mine, StoredCursor("r")) if n == 3 else self.one_more(engine, mine)
        assert [r["event_id"] for r in table(db, "select event_id from done order by 1")] == ids

    def one_more(self, engine, mine):
        stored = StoredCursor("r")
        event = next(engine.subscribe("completion", after=stored.load(mine), follow=False))
        with stored.advance(mine, event.cursor):
            mine.execute("insert into done values (%s)", [event.event_id])

    def test_a_block_that_is_rolled_back_leaves_the_cursor_where_it_was(self, db, engine, mine):
        cycle(db)
        cycle(db)
        settle(db)
        first, second = read(db, "completion")
        stored = StoredCursor("r")
        stored.load(mine)
        for expected, event in ((None, first), (first["cursor"], second)):
            with stored.advance(mine, event["cursor"]):
                mine.execute("insert into done values (%s)", [event["event_id"]])
                raise psycopg.Rollback
            assert stored.cursor == expected
            assert table(db, "select cursor from pyff_cursor") == [{"cursor": expected}]
            with stored.advance(mine, event["cursor"]):
                mine.execute("insert into done values (%s)", [event["event_id"]])
            assert stored.cursor == event["cursor"]
        assert len(table(db, "select * from done")) == 2

    def test_names_are_apart(self, db, engine, mine):
        cycle(db)
        settle(db)
        self.consume(engine, mine, StoredCursor("r"))
        assert StoredCursor("other").load(mine) is None

    def test_a_second_reader_of_one_name_is_stopped_before_it_does_anything(self, db, engine, mine):
        cycle(db)
        cycle(db)
        settle(db)
        late = StoredCursor("r")
        late.load(mine)
        self.one_more(engine, mine)
        first, second = read(db, "completion")
        ran = []
        with pytest.raises(CursorMoved, match="'r'"), late.advance(mine, first["cursor"]):
            ran.append(1)
        assert ran == []
        assert late.load(mine) == first["cursor"]
        with late.advance(mine, second["cursor"]):
            pass
        assert late.cursor == second["cursor"]

    def test_two_readers_at_once_process_each_event_once(self, db, dsn, engine, mine):
        for _ in range(10):
            cycle(db)
        settle(db)

        def consume(_):
            with psycopg.connect(dsn) as conn, Engine(dsn) as own:
                moved = 0
                for _ in range(1000):
                    try:
                        self.consume(own, conn, StoredCursor("r"))
                    except (
                        CursorMoved,
                        psycopg.errors.SerializationFailure,
                    ):  # the latter above READ COMMITTED
                        moved += 1
                    else:
                        return moved
            raise AssertionError("it never came to an end")

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(consume, range(2)))
        done = [r["event_id"] for r in table(db, "select event_id from done order by 1")]
        assert done == [event["event_id"] for event in read(db, "completion")]


def test_the_example_counts_each_event_once_however_often_it_is_killed(db, dsn):
    program = Path(__file__).parents[2] / "examples" / "exactly_once.py"

    def start(*arguments):
        return subprocess.Popen(
            [sys.executable, program, *arguments],
            env={**os.environ, "PYFF_DSN": dsn},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    for n in range(12):
        cycle(db, namespace=f"n{n}")
    for lines in (1, 4):
        with start() as process:
            for _ in range(lines):
                assert process.stdout.readline()
            process.kill()
    eid = create(db)
    one(db, "ff_cancel_execution", execution_id=eid)
    settle(db)
    with start("--drain") as process:
        out, error = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, error
    assert out.splitlines()[-1].endswith(" cancelled")
    assert table(db, "select * from finished order by outcome") == [
        {"outcome": "cancelled", "n": 1},
        {"outcome": "success", "n": 12},
    ]
