"""How many frames a stream keeps: by number, and by rate and time."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sql import one, rows, table, violations
from tests.streams.support import append, attempt, info, patch, payloads, read, where


def numbers(db, row, mode):
    return [int(p) for p, m in ((f["payload"], f["mode"]) for f in read(db, row, limit=10_000)) if m == mode]


def test_durable_frames_are_kept_up_to_the_given_number(db):
    row = attempt(db)
    for n in range(10):
        append(db, row, str(n).encode(), maxlen=4)
    assert numbers(db, row, "durable") == [6, 7, 8, 9]
    state = info(db, row)
    assert (state["frame_count"], state["retained"]) == (10, 4)


def test_the_last_number_given_holds_for_the_stream_until_another_is_given(db):
    row = attempt(db)
    append(db, row, b"0", maxlen=3)
    for n in range(1, 6):
        append(db, row, str(n).encode())
    assert numbers(db, row, "durable") == [3, 4, 5]
    append(db, row, b"6", maxlen=2)
    assert numbers(db, row, "durable") == [5, 6]
    append(db, row, b"7", maxlen=100)
    append(db, row, b"8")
    assert numbers(db, row, "durable") == [5, 6, 7, 8]


def test_the_policy_gives_the_number_when_no_append_did(db):
    row = attempt(db, policy={"stream_policy": {"maxlen": 2}})
    for n in range(4):
        append(db, row, str(n).encode())
    assert numbers(db, row, "durable") == [2, 3]
    append(db, row, b"4", maxlen=3)
    append(db, row, b"5")
    assert numbers(db, row, "durable") == [3, 4, 5]
    assert violations(db) == []


def test_ten_thousand_are_kept_by_default(db):
    row = attempt(db)
    append(db, row, b"first")
    # As if 9998 more had been written: a loop of appends would take half a minute.
    db.execute(
        """insert into ff_stream_frame (execution_id, attempt_index, ts_ms, seq, frame_type, mode, mode_no, payload,
                                        encoding, source)
           select execution_id, attempt_index, ts_ms, n, frame_type, mode, n + 1, payload, encoding, source
             from ff_stream_frame, generate_series(1, 9998) n"""
    )
    db.execute("update ff_stream_meta set frame_count = 9999, durable_count = 9999, last_seq = 9998")
    append(db, row, b"10000")
    assert info(db, row)["retained"] == 10_000
    append(db, row, b"10001")
    assert info(db, row)["retained"] == 10_000
    assert table(db, "select min(mode_no) as n from ff_stream_frame") == [{"n": 2}]
    assert violations(db) == []


def test_a_summary_keeps_its_last_64_patches(db):
    row = attempt(db)
    for n in range(70):
        patch(db, row, {"n": n})
    frames = read(db, row, limit=1000)
    assert [f["summary_version"] for f in frames] == list(range(7, 71))
    assert one(db, "ff_read_summary", **where(row))["document"] == {"n": 69}


def test_trimming_touches_no_other_mode(db):
    row = attempt(db)
    for n in range(5):
        append(db, row, str(n).encode(), maxlen=100)
        patch(db, row, {"n": n})
    for n in range(20):
        append(db, row, str(n).encode(), mode="best_effort_live", maxlen_floor=1, maxlen_ceiling=1)
    assert numbers(db, row, "durable") == [0, 1, 2, 3, 4]
    assert numbers(db, row, "best_effort_live") == [19]
    append(db, row, b"5", maxlen=1)
    assert numbers(db, row, "durable") == [5]
    assert numbers(db, row, "best_effort_live") == [19]
    assert len([f for f in read(db, row) if f["mode"] == "durable_summary"]) == 5
    assert violations(db) == []


def test_a_number_given_with_another_mode_says_nothing_about_durable_frames(db):
    row = attempt(db)
    for n in range(4):
        append(db, row, str(n).encode())
    append(db, row, b"0", mode="best_effort_live", maxlen=1)
    append(db, row, b"4")
    assert numbers(db, row, "durable") == [0, 1, 2, 3, 4]
    assert violations(db) == []


class TestLive:
    def test_a_live_frame_is_gone_when_its_time_is_over(self, db, clock):
        clock.freeze()
        row = attempt(db)
        append(db, row, b"live", mode="best_effort_live", ttl_ms=1000)
        append(db, row, b"durable")
        clock.advance(999)
        assert payloads(db, row) == [b"live", b"durable"]
        clock.advance(1)
        assert payloads(db, row) == [b"durable"]
        assert rows(db, "ff_tail_stream", **where(row))[0]["payload"] == b"durable"
        assert info(db, row)["retained"] == 1
        assert info(db, row)["frame_count"] == 2

    def test_expired_frames_are_deleted_by_the_trim_in_portions(self, db, clock):
        clock.freeze()
        row = attempt(db)
        for n in range(5):
            append(db, row, str(n).encode(), mode="best_effort_live", ttl_ms=1000)
        append(db, row, b"later", mode="best_effort_live", ttl_ms=1001)
        append(db, row, b"durable")
        assert one(db, "ff_trim_streams") == {"processed": 0, "errors": 0, "more": False}
        clock.advance(1000)
        assert one(db, "ff_trim_streams", limit=0) == {"processed": 0, "errors": 0, "more": False}
        assert one(db, "ff_trim_streams", limit=3) == {"processed": 3, "errors": 0, "more": True}
        assert one(db, "ff_trim_streams", limit=3) == {"processed": 2, "errors": 0, "more": False}
        left = table(db, "select payload from ff_stream_frame order by ts_ms, seq")
        assert [f["payload"] for f in left] == [b"later", b"durable"]
        assert violations(db) == []

    def test_a_reader_may_leave_live_frames_out(self, db):
        row = attempt(db)
        append(db, row, b"live", mode="best_effort_live")
        append(db, row, b"durable")
        assert payloads(db, row, visibility="exclude_best_effort") == [b"durable"]
        assert len(rows(db, "ff_tail_stream", **where(row), visibility="exclude_best_effort")) == 1


class Model:
    """How many live frames are kept, as the contract says it, in the same arithmetic (IEEE doubles)."""

    def __init__(self):
        self.rate = None
        self.last = None
        self.kept = []

    def append(self, n, ts, ttl_ms, floor, ceiling, alpha):
        ttl_s = ttl_ms / 1000
        if self.rate is None:
            self.rate = floor / (2 * ttl_s)
        else:
            self.rate = alpha * 1000 / max(1, ts - self.last) + (1 - alpha) * self.rate
        self.last = ts
        keep = min(max(math.ceil(2 * self.rate * ttl_s), floor), ceiling)
        self.kept = [*self.kept, n][-keep:]


def step():
    floor = st.integers(1, 8)
    return st.tuples(
        st.sampled_from([0, 0, 1, 2, 7, 50, 333, 1000, 20_000]),
        st.sampled_from([100, 101, 333, 700, 1000, 3000, 10_000]),
        floor,
        floor.flatmap(lambda low: st.integers(8, 60)),
        st.sampled_from([0.001, 0.1, 0.2, 1 / 3, 0.7, 0.999, 1.0]) | st.floats(1e-6, 1.0),
    )


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(step(), min_size=5, max_size=30))
def test_as_many_live_frames_are_kept_as_the_model_keeps(db, clock, steps):
    with db.transaction(force_rollback=True):
        now = clock.freeze()
        row = attempt(db)
        model = Model()
        for n, (advance, ttl_ms, floor, ceiling, alpha) in enumerate(steps):
            now += advance
            clock.advance(advance)
            append(
                db,
                row,
                str(n).encode(),
                mode="best_effort_live",
                ttl_ms=ttl_ms,
                maxlen_floor=floor,
                maxlen_ceiling=ceiling,
                ema_alpha=alpha,
            )
            model.append(n, now, ttl_ms, floor, ceiling, alpha)
            (meta,) = table(db, "select ema_rate_hz, live_last_ms from ff_stream_meta")
            assert (meta["ema_rate_hz"], meta["live_last_ms"]) == (model.rate, now)
            stored = table(db, "select payload from ff_stream_frame order by ts_ms, seq")
            assert [int(f["payload"]) for f in stored] == model.kept
        assert violations(db) == []


@pytest.mark.parametrize(("ttl_ms", "floor"), [(10_000, 64), (100, 7), (333, 5), (700, 49), (600_000, 3)])
def test_the_first_live_frame_sets_a_rate_that_keeps_the_floor(db, clock, ttl_ms, floor):
    """Also where the division and the product do not cancel out exactly."""
    now = clock.freeze()
    row = attempt(db)
    model = Model()
    for n in range(floor + 2):
        model.append(n, now + n * 3 * ttl_ms, ttl_ms, floor, 100_000, 0.5)
        append(
            db,
            row,
            str(n).encode(),
            mode="best_effort_live",
            ttl_ms=ttl_ms,
            maxlen_floor=floor,
            maxlen_ceiling=100_000,
            ema_alpha=0.5,
        )
        clock.advance(3 * ttl_ms)
    stored = table(db, "select payload from ff_stream_frame order by ts_ms, seq")
    assert [int(f["payload"]) for f in stored] == model.kept
    assert len(model.kept) in (floor, floor + 1)
