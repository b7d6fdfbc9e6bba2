"""Waiting for frames: by polling, and by notifications, which only watched streams send."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.sql import execution, notifications, one, refused, rows, table, take, violations
from tests.streams.support import append, attempt, info, tail, where


def watch(db, row, **args):
    return one(db, "ff_watch_stream", **where(row), **args)["channel"]


@pytest.mark.own_session("LISTEN")
def test_a_watched_stream_notifies_on_its_own_channel(db, connect):
    row = attempt(db)
    channel = watch(db, row)
    assert channel == f"ff_stream_{row['execution_id'][-36:]}_0"
    listener = connect()
    listener.execute(f'listen "{channel}"')
    append(db, row)
    assert notifications(listener) == [(channel, "")]
    assert violations(db) == []


@pytest.mark.own_session("LISTEN")
def test_an_unwatched_stream_never_notifies(db, connect):
    row = attempt(db)
    listener = connect()
    listener.execute(f'listen "ff_stream_{row["execution_id"][-36:]}_0"')
    for _ in range(3):
        append(db, row)
    one(db, "ff_complete", handle=row["handle"])
    assert notifications(listener) == []


@pytest.mark.own_session("LISTEN")
def test_it_notifies_at_most_every_50_ms(db, connect, clock):
    clock.freeze()
    row = attempt(db)
    channel = watch(db, row)
    listener = connect()
    listener.execute(f'listen "{channel}"')
    for advance in (0, 1, 48, 1, 49, 1):
        clock.advance(advance)
        append(db, row)
    assert len(notifications(listener)) == 3  # after 0, 50 and 100 ms


@pytest.mark.own_session("LISTEN")
def test_the_first_frame_after_a_new_watch_notifies_at_once(db, connect, clock):
    clock.freeze()
    row = attempt(db)
    channel = watch(db, row)
    append(db, row)  # rang, for the first watcher
    listener = connect()
    listener.execute(f'listen "{channel}"')
    watch(db, row)
    assert len(tail(db, row)) == 1
    append(db, row)
    append(db, row)
    assert len(notifications(listener)) == 1


@pytest.mark.own_session("LISTEN")
def test_a_clock_that_steps_back_does_not_silence_it(db, connect, clock):
    clock.freeze()
    row = attempt(db)
    channel = watch(db, row)
    listener = connect()
    listener.execute(f'listen "{channel}"')
    append(db, row)
    clock.advance(-10_000)
    append(db, row)
    assert len(notifications(listener)) == 2


@pytest.mark.own_session("LISTEN")
def test_a_watch_ends_after_its_time_and_the_longest_one_holds(db, connect, clock):
    clock.freeze()
    row = attempt(db)
    channel = watch(db, row, ttl_ms=5000)
    assert watch(db, row, ttl_ms=100) == channel
    listener = connect()
    listener.execute(f'listen "{channel}"')
    clock.advance(4999)
    append(db, row)
    assert len(notifications(listener)) == 1
    clock.advance(1)
    append(db, row)
    one(db, "ff_complete", handle=row["handle"])
    assert notifications(listener) == []


@pytest.mark.own_session("LISTEN")
def test_the_close_notifies_even_right_after_a_frame(db, connect, clock):
    clock.freeze()
    row = attempt(db)
    channel = watch(db, row)
    listener = connect()
    listener.execute(f'listen "{channel}"')
    append(db, row)
    assert len(notifications(listener)) == 1
    one(db, "ff_complete", handle=row["handle"])
    assert len(notifications(listener)) == 1


@pytest.mark.own_session("LISTEN")
def test_the_setting_silences_streams_too(db, connect):
    one(db, "ff_set_setting", name="notify", value="off")
    row = attempt(db)
    channel = watch(db, row)
    listener = connect()
    listener.execute(f'listen "{channel}"')
    append(db, row)
    one(db, "ff_complete", handle=row["handle"])
    assert notifications(listener) == []


def test_a_first_watch_opens_the_stream_without_a_frame(db):
    row = attempt(db)
    watch(db, row)
    assert execution(db, row["execution_id"])["stream_open"] is True
    assert info(db, row)["frame_count"] == 0
    assert append(db, row)["frame_count"] == 1
    assert violations(db) == []


def test_watching_an_attempt_that_is_over_writes_nothing(db):
    row = attempt(db)
    one(db, "ff_complete", handle=row["handle"])
    assert watch(db, row).startswith("ff_stream_")
    assert table(db, "select * from ff_stream_meta") == []
    assert violations(db) == []


def test_watching_an_earlier_attempt_leaves_the_running_one_alone(db, clock):
    row = attempt(db)
    clock.advance(86_400_000)
    take(db)
    watch(db, row)
    assert table(db, "select * from ff_stream_meta") == []
    assert violations(db) == []


def test_a_closed_stream_is_not_watched(db):
    row = attempt(db)
    append(db, row)
    one(db, "ff_complete", handle=row["handle"])
    watch(db, row)
    assert table(db, "select watch_until_ms from ff_stream_meta") == [{"watch_until_ms": None}]


@pytest.mark.parametrize("ttl_ms", [0, -1, 86_400_001, None])
def test_how_long_one_may_watch(db, ttl_ms):
    with refused("invalid_input"):
        watch(db, attempt(db), ttl_ms=ttl_ms)


def test_first_watches_and_first_frames_at_once_make_one_stream(db, connect):
    for _ in range(10):
        row = attempt(db)
        start = threading.Barrier(4)

        def act(conn, do, row=row, start=start):
            start.wait()
            return do(conn, row)

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(act, connect(), do) for do in (watch, append, watch, append)]:
                done.result()
        assert info(db, row)["frame_count"] == 2
    assert violations(db) == []


def test_a_watch_and_the_end_of_the_attempt_at_once_leave_a_sound_stream(db, connect):
    for _ in range(10):
        row = attempt(db)
        start = threading.Barrier(2)

        def end(conn, row):
            one(conn, "ff_complete", handle=row["handle"])

        def act(conn, do, row=row, start=start):
            start.wait()
            do(conn, row)

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(act, connect(), do) for do in (watch, end)]:
                done.result()
    assert violations(db) == []


class TestBlocking:
    @pytest.mark.read_committed("a wait inside a snapshot could see nothing, and is refused")
    @pytest.mark.own_session("asks the server about its own process")
    def test_a_frame_ends_the_wait(self, db, connect):
        row = attempt(db)
        reader = connect()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(tail, reader, row, block_ms=30_000)
            query = "select 1 from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
            while not table(db, query, reader.info.backend_pid):
                pass
            append(db, row, b"there")
            assert [f["payload"] for f in waiting.result(90)] == [b"there"]

    @pytest.mark.read_committed("a wait inside a snapshot could see nothing, and is refused")
    @pytest.mark.own_session("asks the server about its own process")
    def test_the_close_ends_the_wait(self, db, connect):
        row = attempt(db)
        reader = connect()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(tail, reader, row, block_ms=30_000)
            query = "select 1 from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
            while not table(db, query, reader.info.backend_pid):
                pass
            one(db, "ff_complete", handle=row["handle"])
            assert waiting.result(90) == []

    @pytest.mark.read_committed("a wait inside a snapshot could see nothing, and is refused")
    def test_a_closed_stream_is_not_waited_for(self, db):
        row = attempt(db)
        frame = append(db, row)
        one(db, "ff_complete", handle=row["handle"])
        began = time.monotonic()
        assert tail(db, row, after=frame["frame_id"], block_ms=30_000) == []
        assert time.monotonic() - began < 15

    @pytest.mark.read_committed("a wait inside a snapshot could see nothing, and is refused")
    def test_frames_that_are_there_are_not_waited_for(self, db):
        row = attempt(db)
        append(db, row)
        began = time.monotonic()
        assert len(tail(db, row, block_ms=30_000)) == 1
        assert time.monotonic() - began < 15

    @pytest.mark.read_committed("a wait inside a snapshot could see nothing, and is refused")
    def test_the_wait_ends_by_itself_also_when_the_clock_of_the_engine_stands_still(self, db, clock):
        clock.freeze()
        assert tail(db, attempt(db), block_ms=120) == []

    @pytest.mark.parametrize("level", ["repeatable read", "serializable"])
    def test_a_transaction_that_could_not_see_anything_may_not_wait(self, db, connect, level):
        row = attempt(db)
        append(db, row)
        conn = connect(autocommit=False)
        conn.execute(f"set transaction isolation level {level}")
        with refused("invalid_input") as refusal:
            tail(conn, row, block_ms=1)
        assert refusal.detail["arg"] == "p_block_ms"
        assert len(tail(conn, row, block_ms=0)) == 1

    @pytest.mark.read_committed("a wait inside a snapshot could see nothing, and is refused")
    @pytest.mark.own_session("asks the server about its own process")
    def test_waiting_holds_no_event_back(self, db, connect):
        """It reads only: it has no transaction id."""
        row = attempt(db)
        reader = connect()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(tail, reader, row, block_ms=2000)
            query = "select backend_xid from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
            while not (found := table(db, query, reader.info.backend_pid)):
                pass
            assert found == [{"backend_xid": None}]
            one(db, "ff_complete", handle=row["handle"])
            waiting.result(90)


def test_writers_of_one_stream_take_turns_and_a_tail_misses_none(db, connect):
    """Two holders of one handle, with transactions that stay open and roll back; a reader by id, all the time."""
    row = attempt(db)
    stop = threading.Event()
    seen = []

    def read(conn):
        after = "0-0"
        while True:
            over = stop.is_set()
            for frame in tail(conn, row, after=after, limit=3):
                seen.append(bytes(frame["payload"]))
                after = frame["frame_id"]
            if over and not tail(conn, row, after=after, limit=1):
                return

    def write(conn, name):
        written = []
        for n in range(40):
            payload = f"{name}{n}".encode()
            while not turn(conn, n, payload):
                conn.rollback()
            if n % 5 != 4:
                written.append(payload)
        return written

    def turn(conn, n, payload):
        """False: it met the other one, which only stricter isolation minds."""
        try:
            append(conn, row, payload)
            if n % 3 == 0:
                time.sleep(0.002)
            if n % 5 == 4:
                conn.rollback()
            else:
                conn.commit()
        except psycopg.errors.SerializationFailure:
            return False
        return True

    with ThreadPoolExecutor(3) as pool:
        reader = pool.submit(read, connect())
        writers = [pool.submit(write, connect(autocommit=False), name) for name in "ab"]
        try:
            written = [w.result() for w in writers]
        finally:
            stop.set()
        reader.result()
    assert sorted(seen) == sorted(written[0] + written[1])
    for name, own in zip("ab", written, strict=True):
        assert [p for p in seen if p.startswith(name.encode())] == own
    assert info(db, row)["frame_count"] == len(seen)
    assert rows(db, "ff_read_stream", **where(row), limit=1000)[-1]["payload"] == seen[-1]
    assert violations(db) == []
