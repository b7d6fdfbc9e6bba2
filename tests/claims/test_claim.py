"""ff_claim: which work it returns, in which order, and the time-based transitions that it applies."""

import pytest

from tests.sql import (
    claim,
    create,
    events,
    execution,
    notifications,
    one,
    refused,
    rows,
    table,
    take,
    violations,
)

CLAIM = {"lane_id": "default", "worker_id": "w", "worker_instance_id": "w1"}


def attempts(db, eid):
    return table(
        db, "select * from ff_attempt where execution_id = %s order by attempt_index", eid.split("}:")[1]
    )


def test_an_empty_or_unknown_lane_gives_no_rows(db):
    assert claim(db, "nowhere") is None
    take_all = create(db)
    assert take(db)["execution_id"] == take_all
    assert claim(db) is None


def test_a_claim_hands_out_the_execution_with_its_lease(db, clock):
    now = clock.freeze()
    eid = create(
        db, payload=b"\x01\x00", payload_encoding="bin", execution_kind="k", tags={"a.b": "c"}, priority=3
    )
    row = take(db, lease_ttl_ms=1234)
    lease = {k: row.pop(k) for k in ("handle", "lease_id", "attempt_id")}
    assert row == {
        "handle_kind": "fresh",
        "execution_id": eid,
        "namespace": "default",
        "lane_id": "default",
        "flow_id": None,
        "execution_kind": "k",
        "payload": b"\x01\x00",
        "payload_encoding": "bin",
        "tags": {"a.b": "c"},
        "priority": 3,
        "attempt_index": 0,
        "attempt_type": "initial",
        "lease_epoch": 1,
        "lease_expires_at_ms": now + 1234,
        "attempt_timeout_at_ms": None,
        "deadline_at_ms": None,
    }
    assert one(db, "ff_handle_decode", handle=lease["handle"]) == {
        "execution_id": eid,
        "attempt_index": 0,
        "lease_id": lease["lease_id"],
        "lease_epoch": 1,
        "attempt_id": lease["attempt_id"],
    }
    stored = execution(db, eid)
    assert (stored["lifecycle_phase"], stored["ownership_state"]) == ("active", "leased")
    assert (stored["blocking_reason"], stored["attempt_state"]) == ("none", "running_attempt")
    assert (stored["worker_id"], stored["worker_instance_id"]) == ("w", "w-1")
    assert stored["started_at_ms"] == stored["lease_acquired_at_ms"] == now
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["attempt_type"], attempt["lease_epoch"]) == ("started", "initial", 1)
    assert events(db, eid) == ["lease/acquired"]
    assert violations(db) == []


def test_the_lease_event_names_lease_and_worker_and_carries_the_tags(db):
    eid = create(db, tags={"a.b": "c"}, namespace="ns")
    row = take(db)
    (event,) = table(db, "select * from ff_event")
    assert event["lease_id"] == row["lease_id"]
    assert (event["lease_epoch"], event["attempt_index"]) == (1, 0)
    assert (event["worker_id"], event["worker_instance_id"]) == ("w", "w-1")
    assert (event["namespace"], event["tags"], event["lane_id"]) == ("ns", {"a.b": "c"}, "default")
    assert str(event["execution_id"]) == eid.split("}:")[1]


def test_higher_priority_goes_first_then_the_older_one(db, clock):
    clock.freeze()
    order = []
    for priority in (1, 5, 5, 0, 9):
        order.append((-priority, len(order), create(db, priority=priority)))
        clock.advance(1)
    assert [take(db)["execution_id"] for _ in order] == [eid for _, _, eid in sorted(order)]


def test_executions_of_one_millisecond_go_in_the_order_of_their_creation(db, clock):
    clock.freeze()
    created = [create(db) for _ in range(20)]
    assert [take(db)["execution_id"] for _ in created] == created


def test_lanes_are_apart(db):
    create(db, "a")
    assert claim(db, "b") is None
    create(db, "b")
    assert take(db, "b")["lane_id"] == "b"


def test_a_claim_can_ask_for_one_namespace(db):
    create(db, namespace="a")
    wanted = create(db, namespace="b")
    assert take(db, namespace="b")["execution_id"] == wanted
    assert claim(db, namespace="b") is None


@pytest.mark.parametrize("state", ["paused", "disabled"])
def test_a_stopped_lane_hands_out_nothing(db, state):
    create(db)
    db.execute("update ff_lane_registry set state = %s", [state])
    assert claim(db) is None


def test_a_draining_lane_still_hands_out_work(db):
    create(db)
    db.execute("update ff_lane_registry set state = 'draining'")
    take(db)


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"lane_id": None}, "invalid_input"),
        ({"lane_id": ""}, "invalid_lane_id"),
        ({"lane_id": "x" * 65}, "invalid_lane_id"),
        ({"worker_id": None}, "invalid_input"),
        ({"worker_id": ""}, "invalid_input"),
        ({"worker_id": "x" * 257}, "invalid_input"),
        ({"worker_id": "a\nb"}, "invalid_input"),
        ({"worker_instance_id": None}, "invalid_input"),
        ({"worker_instance_id": ""}, "invalid_input"),
        ({"capabilities": None}, "invalid_input"),
        ({"capabilities": ["a b"]}, "invalid_capabilities"),
        ({"lease_ttl_ms": None}, "invalid_input"),
        ({"lease_ttl_ms": 0}, "invalid_input"),
        ({"lease_ttl_ms": -1}, "invalid_input"),
        ({"lease_ttl_ms": 86_400_001}, "invalid_input"),
        ({"lease_ttl_ms": 2**63 - 1}, "invalid_input"),
        ({"namespace": ""}, "invalid_input"),
        ({"namespace": "x" * 65}, "invalid_input"),
    ],
)
def test_bad_input_is_refused_and_claims_nothing(db, args, kind):
    eid = create(db)
    with refused(kind):
        rows(db, "ff_claim", **{**CLAIM, **args})
    assert execution(db, eid)["public_state"] == "waiting"


def test_only_a_worker_with_all_required_capabilities_gets_an_execution(db):
    plain = create(db, priority=1)
    gpu = create(db, required_capabilities=["gpu"], priority=9)
    both = create(db, required_capabilities=["gpu", "eu"], priority=8)
    assert take(db)["execution_id"] == plain
    assert claim(db) is None
    assert take(db, capabilities=["gpu", "us"])["execution_id"] == gpu
    assert claim(db, capabilities=["eu"]) is None
    assert take(db, capabilities=["us", "eu", "gpu"])["execution_id"] == both


def test_one_order_holds_over_all_the_sets_a_worker_covers(db, clock):
    clock.freeze()
    wanted = []
    for n in range(12):
        needs = [[], ["a"], ["b"], ["a", "b"]][n % 4]
        wanted.append((-(n % 3), n, create(db, required_capabilities=needs, priority=n % 3)))
        clock.advance(1)
    got = [take(db, capabilities=["a", "b", "c"])["execution_id"] for _ in wanted]
    assert got == [eid for _, _, eid in sorted(wanted)]


def test_a_set_that_is_too_long_for_the_index_is_matched_token_by_token(db):
    tokens = [f"token-{n:03}" for n in range(40)]
    eid = create(db, required_capabilities=tokens)
    assert claim(db, capabilities=tokens[1:]) is None
    assert take(db, capabilities=[*tokens, "more"])["execution_id"] == eid


def test_an_execution_with_a_live_grant_is_passed_over(db, clock):
    clock.freeze()
    granted, free = create(db, priority=9), create(db)
    other = {"worker_id": "other", "worker_instance_id": "other-1"}
    one(db, "ff_issue_claim_grant", execution_id=granted, grant_ttl_ms=1000, **other)
    assert take(db)["execution_id"] == free
    assert claim(db) is None
    clock.advance(1000)
    assert take(db)["execution_id"] == granted
    assert table(db, "select * from ff_claim_grant") == []


def test_a_lapsed_lease_is_reclaimed_by_the_next_claim(db, clock):
    clock.freeze()
    eid = create(db)
    first = take(db, worker="a", lease_ttl_ms=1000)
    clock.advance(999)
    assert claim(db, worker="b") is None
    clock.advance(1)
    second = take(db, worker="b")
    assert second["execution_id"] == eid
    assert (second["handle_kind"], second["attempt_type"]) == ("reclaimed", "reclaim")
    assert (second["attempt_index"], second["lease_epoch"]) == (1, 2)
    assert second["attempt_id"] != first["attempt_id"]
    old, new = attempts(db, eid)
    assert (old["state"], old["outcome"]) == ("interrupted_reclaimed", "interrupted_reclaimed")
    assert (old["failure_reason"], old["release_op"]) == ("lease_expired", "reclaim")
    assert (new["state"], new["previous_attempt_index"]) == ("started", 0)
    assert execution(db, eid)["lease_reclaim_count"] == 1
    assert events(db, eid) == ["lease/acquired", "lease/expired:ttl", "lease/reclaimed"]
    assert violations(db) == []


def test_crashed_work_keeps_its_place_in_the_order(db, clock):
    clock.freeze()
    urgent = create(db, priority=9)
    take(db, lease_ttl_ms=10)
    create(db, priority=1)
    clock.advance(10)
    assert take(db)["execution_id"] == urgent


def test_the_former_holder_may_win_its_own_work_again_under_a_new_fence(db, clock):
    clock.freeze()
    create(db)
    first = take(db, lease_ttl_ms=10)
    clock.advance(10)
    again = take(db)
    assert again["execution_id"] == first["execution_id"]
    with refused("stale_lease"):
        one(db, "ff_complete", handle=first["handle"])
    assert one(db, "ff_complete", handle=again["handle"])["outcome"] == "completed"


def test_work_that_crashed_as_often_as_it_may_ends_failed(db, clock):
    clock.freeze()
    eid = create(db, policy={"max_reclaim_count": 2})
    for _ in range(3):
        take(db, lease_ttl_ms=10)
        clock.advance(10)
    assert claim(db) is None
    row = execution(db, eid)
    assert (row["public_state"], row["failure_reason"]) == ("failed", "max_reclaims_exceeded")
    assert [a["state"] for a in attempts(db, eid)] == ["interrupted_reclaimed"] * 3
    assert events(db, eid)[-2:] == ["lease/expired:ttl", "completion/failed:max_reclaims_exceeded"]
    assert violations(db) == []


def test_a_passed_deadline_is_honoured_by_the_next_claim(db, clock):
    now = clock.freeze()
    late = create(db, deadline_at_ms=now + 100, priority=9)
    other = create(db)
    clock.advance(100)
    assert take(db)["execution_id"] == other
    row = execution(db, late)
    assert (row["public_state"], row["failure_reason"]) == ("expired", "execution_deadline")
    assert (row["attempt_state"], row["total_attempt_count"]) == ("none", 0)
    assert events(db, late) == ["completion/expired:execution_deadline"]
    assert violations(db) == []


def test_a_lease_never_outlives_the_deadline(db, clock):
    now = clock.freeze()
    eid = create(db, deadline_at_ms=now + 100)
    assert take(db, lease_ttl_ms=30_000)["lease_expires_at_ms"] == now + 100
    clock.advance(100)
    assert claim(db) is None
    assert execution(db, eid)["public_state"] == "expired"
    assert events(db, eid) == [
        "lease/acquired",
        "lease/expired:execution_deadline",
        "completion/expired:execution_deadline",
    ]
    (attempt,) = attempts(db, eid)
    assert (attempt["state"], attempt["outcome"], attempt["release_op"]) == (
        "ended_failure",
        "expired",
        "expire",
    )
    assert violations(db) == []


def test_an_attempt_that_took_too_long_is_retried_by_its_policy_and_then_expires(db, clock):
    clock.freeze()
    eid = create(
        db,
        policy={
            "timeout_policy": {"attempt_timeout_ms": 50},
            "retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 20}},
        },
    )
    first = take(db)
    assert first["lease_expires_at_ms"] == first["attempt_timeout_at_ms"] == clock.now() + 50
    clock.advance(50)
    assert claim(db) is None
    row = execution(db, eid)
    assert (row["public_state"], row["blocking_reason"]) == ("delayed", "waiting_for_retry_backoff")
    assert (row["retry_count"], row["lease_reclaim_count"]) == (1, 0)
    clock.advance(20)
    second = take(db)
    assert (second["attempt_type"], second["attempt_index"]) == ("retry", 1)
    clock.advance(50)
    assert claim(db) is None
    row = execution(db, eid)
    assert (row["public_state"], row["failure_reason"]) == ("expired", "attempt_timeout")
    assert violations(db) == []


def test_more_overdue_rows_than_one_claim_processes_are_left_for_the_next(db, clock):
    now = clock.freeze()
    for _ in range(70):
        create(db, deadline_at_ms=now + 10)
    clock.advance(10)
    assert claim(db) is None
    left = table(db, "select count(*) as n from ff_exec_core where lifecycle_phase = 'runnable'")[0]["n"]
    assert left == 70 - 64
    assert claim(db) is None
    assert table(db, "select count(*) as n from ff_exec_core where lifecycle_phase = 'runnable'")[0]["n"] == 0


@pytest.mark.own_session("LISTEN")
def test_an_empty_claim_arms_the_lane_and_the_next_submission_notifies_once(db, connect):
    create(db)
    take(db)
    listener = connect()
    listener.execute("listen ff_lane")
    create(db)
    assert notifications(listener) == []
    take(db)
    assert claim(db) is None
    create(db)
    create(db)
    assert notifications(listener) == [("ff_lane", "default")]


@pytest.mark.own_session("LISTEN")
@pytest.mark.parametrize("function", ["ff_create_execution", "ff_create_executions"])
def test_the_first_submission_to_a_new_lane_notifies_once(db, connect, function):
    """A worker may wait for a lane before it exists: its empty claim has no row to arm."""
    assert claim(db) is None
    listener = connect()
    listener.execute("listen ff_lane")
    submit = {"payloads": [b"", b""]} if function == "ff_create_executions" else {}
    rows(db, function, lane_id="default", **submit)
    assert [n.payload for n in listener.notifies(timeout=20, stop_after=1)] == ["default"]
    create(db)
    assert list(listener.notifies(timeout=0.05)) == []


@pytest.mark.own_session("LISTEN")
def test_no_channel_is_notified_while_notify_is_off(db, connect):
    create(db)
    take(db)
    assert claim(db) is None
    one(db, "ff_set_setting", name="notify", value="off")
    listener = connect()
    listener.execute("listen ff_lane")
    create(db)
    assert notifications(listener) == []
