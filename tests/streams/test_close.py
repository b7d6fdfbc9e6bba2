"""A stream closes with its attempt, once, and says why."""

import pytest

from tests.sql import create, execution, one, refused, rows, table, take, violations
from tests.streams.support import RETRY, append, attempt, info, patch, payloads, summary, tail, where


def cancel(db, row):
    one(db, "ff_cancel_execution", execution_id=row["execution_id"])


def fail(db, row):
    one(db, "ff_fail", handle=row["handle"], classification="permanent")


def complete(db, row):
    one(db, "ff_complete", handle=row["handle"])


def complete_as_operator(db, row):
    one(db, "ff_complete_execution", execution_id=row["execution_id"], source="operator_override")


def complete_many(db, row):
    (answer,) = rows(db, "ff_complete_many", handles=[row["handle"]], results=[b"r"])
    assert (answer["outcome"], answer["error_kind"]) == ("completed", None)


def cancel_by_holder(db, row):
    one(db, "ff_cancel", handle=row["handle"])


def cancel_while_paused(db, row):
    one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    cancel(db, row)


def cancel_while_revoked(db, row):
    one(db, "ff_revoke_lease", execution_id=row["execution_id"])
    cancel(db, row)


ENDS = {
    complete: "attempt_success",
    complete_as_operator: "attempt_success",
    complete_many: "attempt_success",
    fail: "attempt_failure",
    cancel: "attempt_cancelled",
    cancel_by_holder: "attempt_cancelled",
    cancel_while_paused: "attempt_cancelled",
    cancel_while_revoked: "attempt_cancelled",
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("first", ["frame", "watch", "summary", "nothing"])
def test_every_end_of_an_attempt_closes_its_stream(db, clock, end, first):
    now = clock.freeze()
    row = attempt(db)
    if first == "frame":
        append(db, row)
    elif first == "watch":
        one(db, "ff_watch_stream", **where(row))
    elif first == "summary":
        patch(db, row, {"a": 1})
    assert info(db, row)["closed_at_ms"] is None
    clock.advance(3)
    end(db, row)
    state = info(db, row)
    assert (state["closed_at_ms"], state["closed_reason"]) == (now + 3, ENDS[end])
    assert execution(db, row["execution_id"])["stream_open"] is False
    with refused("stream_closed"):
        append(db, row)
    assert violations(db) == []


def test_the_deadline_closes_it_as_expired(db, clock):
    row = attempt(db, deadline_at_ms=clock.freeze() + 100)
    append(db, row)
    clock.advance(100)
    one(db, "ff_expire_execution", execution_id=row["execution_id"], phase="execution_deadline")
    assert info(db, row)["closed_reason"] == "expired"
    assert violations(db) == []


def test_an_attempt_timeout_closes_it_as_expired(db, clock):
    clock.freeze()
    row = attempt(db, policy={"timeout_policy": {"attempt_timeout_ms": 100}})
    append(db, row)
    clock.advance(100)
    one(db, "ff_expire_execution", execution_id=row["execution_id"], phase="attempt_timeout")
    assert info(db, row)["closed_reason"] == "expired"
    assert violations(db) == []


def test_a_lapsed_lease_closes_it_at_the_reclaim_and_not_before(db, clock):
    clock.freeze()
    row = attempt(db)
    append(db, row)
    clock.advance(86_400_000)
    one(db, "ff_mark_lease_expired_if_due", execution_id=row["execution_id"])
    assert info(db, row)["closed_at_ms"] is None
    clock.advance(7)
    new = take(db)
    assert info(db, row)["closed_reason"] == "reclaimed"
    assert info(db, row)["closed_at_ms"] == clock.now()
    assert info(db, new)["closed_at_ms"] is None
    assert execution(db, row["execution_id"])["stream_open"] is False
    append(db, new)
    assert violations(db) == []


def test_a_claim_of_many_closes_the_streams_of_the_work_it_reclaims(db, clock):
    clock.freeze()
    some = [attempt(db) for _ in range(3)]
    for row in some[:2]:
        append(db, row)
    clock.advance(86_400_000)
    found = rows(db, "ff_claim_many", lane_id="default", worker_id="v", worker_instance_id="v-1")
    assert len(found) == 3
    assert [info(db, row)["closed_reason"] for row in some] == ["reclaimed"] * 3
    assert violations(db) == []


def test_too_many_reclaims_close_it_as_reclaimed(db, clock):
    row = attempt(db, policy={"max_reclaim_count": 0})
    append(db, row)
    clock.advance(86_400_000)
    assert rows(db, "ff_claim", lane_id="default", worker_id="w", worker_instance_id="w-1") == []
    assert info(db, row)["closed_reason"] == "reclaimed"
    assert violations(db) == []


def test_a_retry_is_a_new_stream_and_the_old_one_stays_readable(db):
    row = attempt(db, policy=RETRY)
    append(db, row, b"first")
    patch(db, row, {"a": 1})
    one(db, "ff_fail", handle=row["handle"])
    assert info(db, row)["closed_reason"] == "attempt_failure"
    again = take(db)
    append(db, again, b"second")
    assert payloads(db, row)[0] == b"first"
    assert payloads(db, again) == [b"second"]
    assert summary(db, row)["document"] == {"a": 1}
    complete(db, again)
    assert violations(db) == []


def test_a_replay_is_a_new_stream(db):
    row = attempt(db)
    append(db, row, b"first")
    complete(db, row)
    one(db, "ff_replay_execution", execution_id=row["execution_id"])
    with refused("execution_not_active"):
        append(db, row)
    again = take(db)
    append(db, again, b"second")
    assert info(db, again)["closed_at_ms"] is None
    complete(db, again)
    assert violations(db) == []


def test_a_pause_does_not_close_it(db):
    row = attempt(db)
    append(db, row, b"1")
    one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    assert info(db, row)["closed_at_ms"] is None
    resumed = take(db)
    append(db, resumed, b"2")
    complete(db, resumed)
    assert payloads(db, row) == [b"1", b"2"]
    assert info(db, row)["closed_reason"] == "attempt_success"
    assert violations(db) == []


def test_a_repeated_end_changes_nothing(db, clock):
    clock.freeze()
    row = attempt(db)
    append(db, row)
    complete(db, row)
    before = info(db, row)
    clock.advance(5)
    assert one(db, "ff_complete", handle=row["handle"])["replayed"] is True
    (answer,) = rows(db, "ff_complete_many", handles=[row["handle"]])
    assert answer["replayed"] is True
    assert info(db, row) == before


def test_a_batch_completes_executions_with_and_without_a_stream_alike(db):
    some = [attempt(db) for _ in range(4)]
    append(db, some[1])
    patch(db, some[3], {"a": 1})
    handles = [row["handle"] for row in some] + [some[1]["handle"]]
    answers = rows(db, "ff_complete_many", handles=handles, results=[b"%d" % n for n in range(5)])
    assert [a["outcome"] for a in answers] == ["completed"] * 5
    assert [a["replayed"] for a in answers] == [False] * 4 + [True]
    results = [one(db, "ff_get_execution_result", execution_id=row["execution_id"])["result"] for row in some]
    assert results == [b"0", b"1", b"2", b"3"]
    assert [info(db, row)["closed_reason"] for row in some] == ["attempt_success"] * 4
    assert violations(db) == []


def test_an_execution_without_a_stream_writes_no_row_for_it(db):
    row = attempt(db)
    complete(db, row)
    assert table(db, "select * from ff_stream_meta") == []


def test_retention_takes_the_streams_with_it(db, clock):
    row = attempt(db)
    append(db, row)
    patch(db, row, {"a": 1})
    other = attempt(db)
    append(db, other)
    complete(db, row)
    clock.advance(1000)
    assert one(db, "ff_trim_retention", retention_ms=1000)["processed"] == 1
    for name in ("ff_stream_meta", "ff_stream_frame", "ff_stream_summary"):
        found = table(db, f"select execution_id::text as id from {name}")
        assert [r["id"] for r in found] == [other["execution_id"][-36:]] * (name != "ff_stream_summary"), name
    assert violations(db) == []


class TestReads:
    def test_an_attempt_without_frames_has_zeros(self, db):
        row = attempt(db)
        assert info(db, row) == {
            "frame_count": 0,
            "retained": 0,
            "last_frame_id": "0-0",
            "summary_version": 0,
            "closed_at_ms": None,
            "closed_reason": None,
        }
        assert payloads(db, row) == []
        assert tail(db, row) == []
        assert summary(db, row) is None

    @pytest.mark.parametrize(
        "function",
        ["ff_stream_info", "ff_read_stream", "ff_tail_stream", "ff_watch_stream", "ff_read_summary"],
    )
    def test_unknown_executions_and_attempts(self, db, function):
        row = attempt(db)
        waiting = create(db)
        with refused("attempt_not_found") as refusal:
            rows(db, function, **where(row, 1))
        assert refusal.detail["attempt_index"] == 1
        with refused("attempt_not_found"):
            rows(db, function, **where(row, -1))
        with refused("attempt_not_found"):
            rows(db, function, execution_id=waiting, attempt_index=0)
        with refused("execution_not_found"):
            rows(db, function, execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07", attempt_index=0)
        with refused("invalid_execution_id"):
            rows(db, function, execution_id="x", attempt_index=0)
        with refused("invalid_input") as refusal:
            rows(db, function, execution_id=row["execution_id"], attempt_index=None)
        assert refusal.detail["arg"] == "p_attempt_index"

    def test_ranges_include_both_ends_and_a_bare_millisecond_means_all_of_it(self, db, clock):
        now = clock.freeze()
        row = attempt(db)
        for n in range(9):
            append(db, row, b"%d" % n)
            if n % 3 == 2:
                clock.advance(1)

        def got(**args):
            return b"".join(payloads(db, row, **args))

        assert got() == b"012345678"
        for args, expected in [
            ({"from": "start", "to": "end"}, b"012345678"),
            ({"from": f"{now + 1}"}, b"345678"),
            ({"from": f"{now + 1}-1"}, b"45678"),
            ({"to": f"{now + 1}"}, b"012345"),
            ({"to": f"{now + 1}-1"}, b"01234"),
            ({"from": f"{now}-2", "to": f"{now + 1}-0"}, b"23"),
            ({"from": f"{now}-1", "to": f"{now}-1"}, b"1"),
            ({"from": f"{now + 2}", "to": f"{now}"}, b""),
            ({"from": "end"}, b""),
            ({"to": "start"}, b""),
            ({"from": "0", "to": "9223372036854775807-2147483647"}, b"012345678"),
            ({"limit": 2}, b"01"),
            ({"from": f"{now + 1}", "limit": 2}, b"34"),
            ({"limit": 0}, b""),
        ]:
            assert got(**args) == expected, args

    @pytest.mark.parametrize(
        "cursor",
        ["", "-", "+", "-1", "+1", "1-", "-1-1", "1-1-1", "1.0", "x", " 1", "1 ", "1-+1", "01", "1-01", "START",
         "9223372036854775808", "1-2147483648", "٧", "1\n", "9" * 40],
    )  # fmt: skip
    def test_what_is_no_place_in_a_stream(self, db, cursor):
        row = attempt(db)
        for args in ({"from": cursor}, {"to": cursor}):
            with refused("invalid_cursor"):
                payloads(db, row, **args)
        with refused("invalid_cursor"):
            tail(db, row, after=cursor)

    @pytest.mark.parametrize("cursor", ["start", "end", "1"])
    def test_a_tail_wants_a_concrete_place(self, db, cursor):
        with refused("invalid_cursor"):
            tail(db, attempt(db), after=cursor)

    def test_limits_and_visibility(self, db):
        row = attempt(db)
        for args in ({"limit": -1}, {"limit": None}, {"visibility": "some"}, {"visibility": None}):
            for read in (payloads, tail):
                with refused("invalid_input"):
                    read(db, row, **args)
        with refused("invalid_input"):
            payloads(db, row, limit=10_001)
        with refused("invalid_input"):
            tail(db, row, limit=1001)
        assert payloads(db, row, limit=10_000) == []
        assert tail(db, row, limit=1000) == []
        for block in (-1, 30_001, None):
            with refused("invalid_input"):
                tail(db, row, block_ms=block)

    def test_a_tail_goes_on_strictly_after_its_cursor(self, db, clock):
        clock.freeze()
        row = attempt(db)
        ids = [append(db, row, b"%d" % n)["frame_id"] for n in range(5)]
        assert [f["frame_id"] for f in tail(db, row)] == ids
        assert [f["frame_id"] for f in tail(db, row, after=ids[2])] == ids[3:]
        assert [f["frame_id"] for f in tail(db, row, after=ids[0], limit=2)] == ids[1:3]
        assert tail(db, row, after=ids[4]) == []
        assert tail(db, row, after="9223372036854775807-2147483647") == []
        ms = ids[0].partition("-")[0]
        assert tail(db, row, after=f"{ms}-2147483647") == []
        assert tail(db, row, limit=0) == []
