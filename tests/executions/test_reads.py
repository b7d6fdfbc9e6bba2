"""Reading one execution: its state, its input, its results."""

import uuid

import pytest

from tests.sql import create, execution, one, refused, rows, table, take, violations

UNKNOWN_ID = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
READS = [
    "ff_describe_execution",
    "ff_read_execution_state",
    "ff_read_execution_info",
    "ff_read_execution_context",
    "ff_read_current_attempt_index",
    "ff_read_total_attempt_count",
    "ff_get_execution_namespace",
    "ff_get_execution_result",
    "ff_list_attempts",
]
# Columns of the tables that describe leaves out, and those it adds.
HIDDEN = {
    "state",
    "queue_id",
    "ready_in",
    "rank",
    "due_at_ms",
    "granted",
    "open_waitpoints",
    "partition_key",
    "payload",
    "request_hash",
    "caps_key",
    "lease_check_at_ms",
    "last_event_ord",
    "stream_open",
    "retention_ms",
    "attempt_timeout_ms",
    "spends",
    "limited",
    "unadmitted_lease_id",
    "blocked_budget_id",
}
ADDED = {
    "parent_execution_id",
    "lane_state",
    "lease_live",
    "progress_pct",
    "progress_message",
    "progress_updated_at_ms",
}
RETRY = {"retry_policy": {"max_retries": 3, "backoff": {"type": "fixed", "delay_ms": 0}}}


def describe(db, eid):
    return one(db, "ff_describe_execution", execution_id=eid)


def result(db, eid, **args):
    return one(db, "ff_get_execution_result", execution_id=eid, **args)


@pytest.mark.parametrize("function", READS)
def test_an_unknown_execution_gives_no_rows(db, function):
    eid = create(db)
    name = uuid.UUID(eid.split(":")[-1])
    for unknown in (f"{{fp:7}}:{UNKNOWN_ID}", f"{{fp:{(name.bytes[-1] + 1) % 256}}}:{name}"):
        assert rows(db, function, execution_id=unknown) == []


@pytest.mark.parametrize("function", READS)
@pytest.mark.parametrize(
    ("eid", "kind"),
    [
        (None, "invalid_input"),
        ("", "invalid_execution_id"),
        (str(UNKNOWN_ID), "invalid_execution_id"),
        (f"{{fp:256}}:{UNKNOWN_ID}", "invalid_execution_id"),
        (f"{{fp:7}}:{UNKNOWN_ID} ", "invalid_execution_id"),
    ],
)
def test_a_malformed_id_is_refused(db, function, eid, kind):
    with refused(kind):
        rows(db, function, execution_id=eid)


# ff_describe_execution


def test_describe_returns_every_column_of_both_tables_but_the_inner_ones(db):
    columns = {
        row["attname"]
        for row in table(
            db,
            """select attname from pg_attribute
                where attrelid in ('ff_exec_core'::regclass, 'ff_exec_input'::regclass)
                  and attnum > 0 and not attisdropped""",
        )
    }
    assert set(describe(db, create(db))) == (columns - HIDDEN) | ADDED


def test_describe_tells_what_is_stored(db, clock):
    now = clock.freeze()
    eid = create(
        db,
        "lane",
        execution_kind="k",
        payload=b"p",
        payload_encoding="bin",
        creator="me",
        namespace="ns",
        priority=7,
        tags={"a.b": "c"},
        required_capabilities=["b", "a"],
        deadline_at_ms=now + 60_000,
        policy={"timeout_policy": {"attempt_timeout_ms": 40_000}},
    )
    clock.advance(3)
    row = take(db, "lane", capabilities=["a", "b"], lease_ttl_ms=1000)
    one(db, "ff_progress", handle=row["handle"], percent=40, message="half way")
    got, stored = describe(db, eid), execution(db, eid)
    assert {name: got[name] for name in got if name in stored and name != "execution_id"} == {
        name: stored[name] for name in got if name in stored and name != "execution_id"
    }
    assert got["execution_id"] == eid
    assert (got["execution_kind"], got["creator"], got["payload_encoding"]) == ("k", "me", "bin")
    assert (got["tags"], got["required_capabilities"]) == ({"a.b": "c"}, ["a", "b"])
    assert got["policy"]["timeout_policy"]["attempt_timeout_ms"] == 40_000
    assert (got["progress_pct"], got["progress_message"]) == (40, "half way")
    assert got["progress_updated_at_ms"] == now + 3
    assert (got["lease_id"], got["lease_epoch"], got["worker_id"]) == (row["lease_id"], 1, "w")


def test_a_lease_is_live_until_the_millisecond_it_ends(db, clock):
    clock.freeze()
    eid = create(db)
    assert describe(db, eid)["lease_live"] is False
    take(db, lease_ttl_ms=10)
    clock.advance(9)
    assert describe(db, eid)["lease_live"] is True
    clock.advance(1)
    got = describe(db, eid)
    assert (got["lease_live"], got["ownership_state"]) == (False, "leased")
    clock.advance(-1)
    one(db, "ff_revoke_lease", execution_id=eid)
    assert describe(db, eid)["lease_live"] is False


def test_the_state_of_the_lane_is_shown_and_not_copied(db):
    eid = create(db)
    for state in ("active", "paused", "disabled"):
        one(db, "ff_set_lane_state", lane_id="default", state=state)
        got = describe(db, eid)
        assert (got["lane_state"], got["public_state"]) == (state, "waiting")


def test_reads_see_the_same_thing(db, clock):
    clock.freeze()
    eid = create(
        db, namespace="ns", payload=b"\x00p", payload_encoding="e", execution_kind="k", tags={"a.b": "c"}
    )
    got = describe(db, eid)
    assert one(db, "ff_read_execution_state", execution_id=eid) == {"public_state": "waiting"}
    info = one(db, "ff_read_execution_info", execution_id=eid)
    assert info == {name: got[name] for name in info}
    assert one(db, "ff_read_execution_context", execution_id=eid) == {
        "payload": b"\x00p",
        "payload_encoding": "e",
        "execution_kind": "k",
        "namespace": "ns",
        "tags": {"a.b": "c"},
    }
    assert one(db, "ff_get_execution_namespace", execution_id=eid) == {"namespace": "ns"}


def test_attempts_are_counted_from_the_first_claim(db):
    eid = create(db, policy=RETRY)

    def counts():
        return (
            one(db, "ff_read_current_attempt_index", execution_id=eid)["attempt_index"],
            one(db, "ff_read_total_attempt_count", execution_id=eid)["total_attempt_count"],
        )

    assert counts() == (None, 0)
    row = take(db)
    assert counts() == (0, 1)
    one(db, "ff_fail", handle=row["handle"])
    assert counts() == (0, 1)
    take(db)
    assert counts() == (1, 2)


# ff_get_execution_result


def test_there_is_no_result_before_the_end(db):
    eid = create(db)
    nothing = {
        "attempt_index": None,
        "outcome": None,
        "public_state": "waiting",
        "terminal_outcome": "none",
        "result": None,
        "result_encoding": None,
        "failure_reason": None,
        "failure_category": None,
        "ended_at_ms": None,
    }
    assert result(db, eid) == nothing
    take(db)
    assert result(db, eid) == {**nothing, "public_state": "active"}


def test_the_result_of_a_completed_execution(db, clock):
    now = clock.freeze()
    eid = create(db)
    one(db, "ff_complete", handle=take(db)["handle"], result=b"\x00r", result_encoding="bin")
    want = {
        "attempt_index": 0,
        "outcome": "success",
        "public_state": "completed",
        "terminal_outcome": "success",
        "result": b"\x00r",
        "result_encoding": "bin",
        "failure_reason": None,
        "failure_category": None,
        "ended_at_ms": now,
    }
    assert result(db, eid) == want
    assert result(db, eid, attempt_index=0) == want
    assert rows(db, "ff_get_execution_result", execution_id=eid, attempt_index=1) == []
    assert rows(db, "ff_get_execution_result", execution_id=eid, attempt_index=-1) == []


def test_a_failed_attempt_with_a_retry_left_is_not_the_result(db):
    eid = create(db, policy=RETRY)
    one(db, "ff_fail", handle=take(db)["handle"], reason="broke", category="c")
    assert (result(db, eid)["attempt_index"], result(db, eid)["result"]) == (None, None)
    first = result(db, eid, attempt_index=0)
    assert (first["outcome"], first["failure_reason"], first["failure_category"]) == ("failure", "broke", "c")
    one(db, "ff_complete", handle=take(db)["handle"], result=b"2")
    assert (result(db, eid)["attempt_index"], result(db, eid)["result"]) == (1, b"2")


def test_the_result_of_what_ended_otherwise(db, clock):
    now = clock.freeze()
    failed = create(db, priority=9)
    one(db, "ff_fail", handle=take(db)["handle"], reason="broke", category="c")
    got = result(db, failed)
    assert (got["attempt_index"], got["outcome"], got["terminal_outcome"]) == (0, "failure", "failed")
    assert (got["failure_reason"], got["failure_category"], got["result"]) == ("broke", "c", None)
    unclaimed = create(db)
    one(db, "ff_cancel_execution", execution_id=unclaimed)
    got = result(db, unclaimed)
    assert (got["attempt_index"], got["public_state"], got["terminal_outcome"]) == (
        None,
        "cancelled",
        "cancelled",
    )
    assert got["ended_at_ms"] == now


@pytest.mark.parametrize("pause", [0, 1])
def test_a_replay_hides_the_old_result_until_it_ends_itself(db, clock, pause):
    """Also when all of it happens in one millisecond."""
    clock.freeze()
    eid = create(db)
    one(db, "ff_complete", handle=take(db)["handle"], result=b"first")
    clock.advance(pause)
    one(db, "ff_replay_execution", execution_id=eid)
    got = result(db, eid)
    assert (got["attempt_index"], got["result"], got["public_state"]) == (None, None, "waiting")
    row = take(db)
    assert result(db, eid)["result"] is None
    assert result(db, eid, attempt_index=0)["result"] == b"first"
    clock.advance(pause)
    one(db, "ff_complete", handle=row["handle"], result=b"second")
    assert (result(db, eid)["attempt_index"], result(db, eid)["result"]) == (1, b"second")
    assert result(db, eid, attempt_index=0)["result"] == b"first"


@pytest.mark.parametrize("pause", [0, 1])
def test_a_replay_that_was_cancelled_unclaimed_has_no_result(db, clock, pause):
    clock.freeze()
    eid = create(db)
    one(db, "ff_complete", handle=take(db)["handle"], result=b"first")
    clock.advance(pause)
    one(db, "ff_replay_execution", execution_id=eid)
    one(db, "ff_cancel_execution", execution_id=eid)
    got = result(db, eid)
    assert (got["public_state"], got["result"], got["attempt_index"]) == ("cancelled", None, None)


# ff_list_attempts


def test_attempts_are_listed_in_order_without_their_results(db, clock):
    clock.freeze()
    eid = create(db, policy=RETRY)
    assert rows(db, "ff_list_attempts", execution_id=eid) == []
    first = take(db, worker="a")
    one(db, "ff_fail", handle=first["handle"], reason="broke")
    take(db, worker="b", lease_ttl_ms=10)
    clock.advance(10)
    third = take(db, worker="c")
    one(db, "ff_delay", handle=third["handle"], delay_ms=0)
    fourth = take(db, worker="d")
    one(db, "ff_complete", handle=fourth["handle"], result=b"r", result_encoding="e")
    got = rows(db, "ff_list_attempts", execution_id=eid)
    assert [(a["attempt_index"], a["attempt_type"], a["state"], a["worker_id"]) for a in got] == [
        (0, "initial", "ended_failure", "a"),
        (1, "retry", "interrupted_reclaimed", "b"),
        (2, "reclaim", "ended_success", "d"),
    ]
    assert [a["lease_epoch"] for a in got] == [1, 2, 4]
    assert [a["previous_attempt_index"] for a in got] == [None, 0, 1]
    assert [a["release_op"] for a in got] == ["fail", "reclaim", "complete"]
    assert (got[2]["attempt_id"], got[2]["lease_id"]) == (third["attempt_id"], fourth["lease_id"])
    assert got[2]["suspended_at_ms"] == got[2]["resumed_at_ms"] == clock.now()
    assert got[2]["result_encoding"] == "e"
    assert "result" not in got[2]
    assert violations(db) == []


# ff_read_exec_core_fields


def fields(db, eid, *names):
    return [
        (row["field"], row["value"])
        for row in rows(db, "ff_read_exec_core_fields", execution_id=eid, fields=list(names))
    ]


def test_fields_come_as_text_in_the_order_asked_for(db, clock):
    now = clock.freeze()
    eid = create(db, priority=3, tags={"a.b": "c"})
    assert fields(db, eid, "priority", "public_state", "execution_id", "priority", "started_at_ms") == [
        ("priority", "3"),
        ("public_state", "waiting"),
        ("execution_id", eid),
        ("priority", "3"),
        ("started_at_ms", None),
    ]
    assert fields(db, eid, "lease_live", "tags", "created_at_ms") == [
        ("lease_live", "false"),
        ("tags", '{"a.b": "c"}'),
        ("created_at_ms", str(now)),
    ]
    assert fields(db, eid) == []


def test_every_field_of_describe_can_be_asked_for(db):
    eid = create(db)
    take(db)
    names = list(describe(db, eid))
    assert [name for name, _ in fields(db, eid, *names)] == names


@pytest.mark.parametrize(
    "name", ["", "no_such_field", "Priority", "p_execution_id", "payload", "caps_key", "request_hash", None]
)
def test_a_field_that_describe_does_not_return_is_refused(db, name):
    for eid in (create(db), f"{{fp:7}}:{UNKNOWN_ID}"):
        with refused("invalid_input") as refusal:
            fields(db, eid, "priority", name)
        assert refusal.detail["field"] == name


def test_fields_of_an_unknown_execution_are_no_rows(db):
    assert fields(db, f"{{fp:7}}:{UNKNOWN_ID}", "priority") == []


def test_the_fields_must_be_given(db):
    eid = create(db)
    with refused("invalid_input") as refusal:
        rows(db, "ff_read_exec_core_fields", execution_id=eid, fields=None)
    assert refusal.detail["arg"] == "p_fields"
    with refused("invalid_execution_id"):
        fields(db, "x", "priority")
    with refused("invalid_input"):
        fields(db, None, "priority")
