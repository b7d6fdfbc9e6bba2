"""Appending: what a frame may be, who may write it, which id it gets."""

import threading
import uuid

import pytest

from tests.sql import create, execution, one, refused, rows, table, take, violations, wait_for_lock
from tests.streams.support import append, attempt, info, payloads, read, where


def test_a_frame_is_returned_as_it_was_written(db, clock):
    now = clock.freeze()
    row = attempt(db)
    answer = append(
        db, row, b"hello", frame_type="log", encoding="latin1", correlation_id="c-1", frame_key="k-1"
    )
    assert answer == {
        "frame_id": f"{now}-0",
        "ts_ms": now,
        "seq": 0,
        "frame_count": 1,
        "summary_version": None,
        "replayed": False,
    }
    (frame,) = read(db, row)
    assert frame == {
        "frame_id": f"{now}-0",
        "ts_ms": now,
        "seq": 0,
        "frame_type": "log",
        "mode": "durable",
        "payload": b"hello",
        "encoding": "latin1",
        "source": "w-1",
        "correlation_id": "c-1",
        "summary_version": None,
    }
    assert violations(db) == []


@pytest.mark.parametrize("mode", ["durable", "best_effort_live"])
def test_binary_payloads_come_back_byte_by_byte(db, mode):
    row = attempt(db)
    every = bytes(range(256)) + b"\x00\xc3\x28\xff" + b"\x00"
    append(db, row, every, mode=mode)
    append(db, row, b"", mode=mode)
    assert payloads(db, row) == [every, b""]


def test_the_largest_payload_fits_and_one_byte_more_does_not(db):
    row = attempt(db)
    append(db, row, b"x" * 65536)
    with refused("payload_too_large") as refusal:
        append(db, row, b"x" * 65537)
    assert (refusal.detail["size"], refusal.detail["limit"]) == (65537, 65536)
    assert info(db, row)["frame_count"] == 1


def test_the_limit_of_payloads_is_a_setting(db):
    row = attempt(db)
    one(db, "ff_set_setting", name="max_payload_bytes", value="3")
    append(db, row, b"xxx")
    with refused("payload_too_large"):
        append(db, row, b"xxxx")
    with refused("invalid_input"):
        one(db, "ff_set_setting", name="max_payload_bytes", value="-1")


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("frame_type", "", "invalid_frame_type"),
        ("frame_type", "A", "invalid_frame_type"),
        ("frame_type", "a b", "invalid_frame_type"),
        ("frame_type", "a\n", "invalid_frame_type"),
        ("frame_type", "x" * 65, "invalid_frame_type"),
        ("mode", "volatile", "invalid_stream_mode"),
        ("mode", None, "invalid_stream_mode"),
        ("payload", None, "invalid_input"),
        ("maxlen", 0, "invalid_input"),
        ("maxlen", 1_000_001, "invalid_input"),
        ("ttl_ms", 99, "invalid_input"),
        ("ttl_ms", 600_001, "invalid_input"),
        ("ttl_ms", None, "invalid_input"),
        ("maxlen_floor", 0, "invalid_input"),
        ("maxlen_floor", 16_385, "invalid_input"),
        ("maxlen_ceiling", 100_001, "invalid_input"),
        ("maxlen_ceiling", 63, "invalid_input"),
        ("ema_alpha", 0.0, "invalid_input"),
        ("ema_alpha", 1.0001, "invalid_input"),
        ("ema_alpha", float("nan"), "invalid_input"),
        ("frame_key", "x" * 257, "invalid_input"),
        ("correlation_id", "x" * 257, "invalid_input"),
        ("encoding", "x" * 65, "invalid_input"),
        ("encoding", None, "invalid_input"),
    ],
)
def test_what_a_frame_may_not_be(db, argument, value, kind):
    row = attempt(db)
    with refused(kind):
        append(db, row, **{"payload": b"x", argument: value})
    assert info(db, row)["frame_count"] == 0


def test_the_edges_of_every_range_are_accepted(db):
    row = attempt(db)
    for args in (
        {"frame_type": "x" * 64},
        {"frame_type": "a-z_0.9:"},
        {"maxlen": 1},
        {"maxlen": 1_000_000},
        {"ttl_ms": 100, "mode": "best_effort_live"},
        {"ttl_ms": 600_000, "mode": "best_effort_live"},
        {"maxlen_floor": 1, "maxlen_ceiling": 1},
        {"maxlen_floor": 100_000, "maxlen_ceiling": 100_000},
        {"ema_alpha": 1.0, "mode": "best_effort_live"},
        {"ema_alpha": 5e-324, "mode": "best_effort_live"},
        {"frame_key": "ä" * 256},
        {"correlation_id": "ä" * 256},
    ):
        assert append(db, row, **args)["replayed"] is False


def test_shape_is_checked_before_the_handle_and_the_type_first_of_all(db):
    bad = {"handle": "nonsense", "payload": b"x" * 65537}
    with refused("invalid_frame_type"):
        one(db, "ff_append_frame", **bad, frame_type="A", mode="x", maxlen=0)
    with refused("invalid_stream_mode"):
        one(db, "ff_append_frame", **bad, mode="x", maxlen=0)
    with refused("payload_too_large"):
        one(db, "ff_append_frame", **bad, maxlen=0)
    with refused("invalid_input"):
        one(db, "ff_append_frame", **{**bad, "payload": b""}, maxlen=0)
    with refused("invalid_handle"):
        one(db, "ff_append_frame", **{**bad, "payload": b""})


def test_ids_grow_by_seq_within_a_millisecond_and_start_anew_in_the_next(db, clock):
    now = clock.freeze()
    row = attempt(db)
    ids = [append(db, row)["frame_id"] for _ in range(3)]
    clock.advance(1)
    ids.append(append(db, row)["frame_id"])
    assert ids == [f"{now}-0", f"{now}-1", f"{now}-2", f"{now + 1}-0"]


def test_ids_grow_when_the_clock_steps_back(db, clock):
    now = clock.freeze()
    row = attempt(db)
    append(db, row, b"1")
    clock.advance(-5000)
    assert append(db, row, b"2")["frame_id"] == f"{now}-1"
    assert append(db, row, b"3", mode="best_effort_live")["frame_id"] == f"{now}-2"
    clock.advance(4999)
    assert append(db, row, b"4")["frame_id"] == f"{now}-3"
    clock.advance(2)
    assert append(db, row, b"5")["frame_id"] == f"{now + 1}-0"
    assert payloads(db, row) == [b"1", b"2", b"3", b"4", b"5"]
    assert violations(db) == []


def test_the_first_frame_of_a_clock_at_zero_comes_after_the_start(db, clock):
    clock.set(0)
    row = attempt(db)
    assert append(db, row)["frame_id"] == "0-1"
    assert len(rows(db, "ff_tail_stream", **where(row))) == 1


def test_a_frame_key_makes_a_repeated_append_answer_the_first(db, clock):
    clock.freeze()
    row = attempt(db)
    first = append(db, row, b"x", frame_key="k")
    append(db, row, b"y")
    clock.advance(10)
    assert append(db, row, b"x", frame_key="k", encoding="other") == {
        **first,
        "frame_count": 2,
        "replayed": True,
    }
    assert payloads(db, row) == [b"x", b"y"]
    for other in ({"payload": b"z"}, {"frame_type": "log"}, {"mode": "best_effort_live"}):
        with refused("frame_conflict") as refusal:
            append(db, row, **{"payload": b"x", "frame_key": "k", **other})
        assert refusal.detail["frame_id"] == first["frame_id"]
    assert append(db, row, b"z", frame_key="")["replayed"] is False
    assert append(db, row, b"z", frame_key="")["replayed"] is False


def test_a_patch_with_a_key_is_applied_once(db):
    row = attempt(db)
    first = append(db, row, b'{"n": 1}', mode="durable_summary", frame_key="k")
    again = append(db, row, b'{"n": 1}', mode="durable_summary", frame_key="k")
    assert again == {**first, "replayed": True}
    assert again["summary_version"] == 1
    assert one(db, "ff_read_summary", **where(row))["version"] == 1


def test_a_key_belongs_to_one_stream(db):
    one_row, other = attempt(db), attempt(db)
    append(db, one_row, b"x", frame_key="k")
    assert append(db, other, b"y", frame_key="k")["replayed"] is False


def test_the_execution_is_marked_by_the_first_frame_alone(db):
    row = attempt(db)
    assert execution(db, row["execution_id"])["stream_open"] is False
    append(db, row)
    before = execution(db, row["execution_id"])
    assert before["stream_open"] is True
    append(db, row)
    assert execution(db, row["execution_id"]) == before


class TestFence:
    def test_unknown_execution(self, db):
        row = attempt(db)
        handle = row["handle"].replace(row["execution_id"][-36:], f"{uuid.UUID(int=7)}")
        partition = "." + row["execution_id"][4:].partition("}")[0] + "."
        with refused("execution_not_found"):
            one(db, "ff_append_frame", handle=handle.replace(partition, ".7."), payload=b"x")

    def test_a_terminal_execution_says_that_the_stream_is_closed(self, db):
        row = attempt(db)
        one(db, "ff_complete", handle=row["handle"])
        with refused("stream_closed") as refusal:
            append(db, row)
        assert refusal.detail["execution_id"] == row["execution_id"]
        assert refusal.detail["closed_reason"] == "attempt_success"

    def test_a_paused_attempt_cannot_append(self, db):
        row = attempt(db)
        one(db, "ff_delay", handle=row["handle"], delay_ms=0)
        with refused("execution_not_active"):
            append(db, row)

    def test_a_resumed_attempt_goes_on_in_the_same_stream_and_its_old_lease_does_not(self, db):
        row = attempt(db)
        append(db, row, b"1")
        one(db, "ff_delay", handle=row["handle"], delay_ms=0)
        resumed = take(db, worker="other")
        append(db, resumed, b"2")
        assert [f["source"] for f in read(db, row)] == ["w-1", "other-1"]
        with refused("stale_lease"):
            append(db, row)

    def test_an_expired_lease(self, db, clock):
        row = attempt(db)
        clock.advance(86_400_000)
        with refused("lease_expired") as refusal:
            append(db, row)
        assert refusal.detail["reason"] == "ttl"

    def test_a_revoked_lease(self, db):
        row = attempt(db)
        one(db, "ff_revoke_lease", execution_id=row["execution_id"])
        with refused("lease_revoked"):
            append(db, row)

    def test_a_reclaimed_lease(self, db, clock):
        row = attempt(db)
        append(db, row, b"old")
        clock.advance(86_400_000)
        new = take(db)
        assert new["attempt_index"] == 1
        with refused("stale_lease"):
            append(db, row)
        append(db, new, b"new")
        assert payloads(db, new) == [b"new"]
        assert payloads(db, row) == [b"old"]

    def test_a_made_up_lease_id(self, db):
        row = attempt(db)
        handle = row["handle"].replace(str(row["lease_id"]), str(uuid.uuid4()))
        with refused("stale_lease"):
            one(db, "ff_append_frame", handle=handle, payload=b"x")

    def test_nothing_of_a_refused_frame_stays(self, db):
        row = attempt(db)
        one(db, "ff_revoke_lease", execution_id=row["execution_id"])
        with refused("lease_revoked"):
            append(db, row)
        assert table(db, "select * from ff_stream_meta") == []
        assert violations(db) == []


@pytest.mark.read_committed("the clock of the tests is a row, which a snapshot shows as it was")
def test_a_waiting_append_checks_the_lease_at_the_time_it_got_the_stream(db, connect, clock):
    """A watcher holds the stream; meanwhile the lease runs out."""
    row = attempt(db)
    append(db, row)
    watcher = connect(autocommit=False)
    one(watcher, "ff_watch_stream", **where(row))
    caught = []
    writer = connect()

    def write():
        try:
            append(writer, row)
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    wait_for_lock(db, writer)
    clock.advance(86_400_000)
    watcher.commit()
    thread.join()
    assert [error.sqlstate for error in caught] == ["WF402"]


def test_every_error_names_the_execution(db):
    row = attempt(db)
    append(db, row, frame_key="k")
    with refused("frame_conflict") as refusal:
        append(db, row, b"other", frame_key="k")
    assert refusal.detail["execution_id"] == row["execution_id"]
    with refused("invalid_patch") as refusal:
        append(db, row, b"[]", mode="durable_summary")
    assert refusal.detail["execution_id"] == row["execution_id"]


def test_streams_of_many_executions_do_not_mix(db):
    some = [attempt(db) for _ in range(5)]
    for n in range(3):
        for row in some:
            append(db, row, f"{row['execution_id']} {n}".encode())
    for row in some:
        assert payloads(db, row) == [f"{row['execution_id']} {n}".encode() for n in range(3)]
    assert create(db)
    assert violations(db) == []
