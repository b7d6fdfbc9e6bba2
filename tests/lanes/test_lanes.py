"""Lanes: what each state allows, and the list of lanes."""

import pytest

from tests.sql import claim, create, notifications, one, refused, rows, table, take, violations

pytestmark = pytest.mark.modes

STATES = ["active", "paused", "draining", "disabled"]


def set_state(db, state, lane="default", **args):
    return one(db, "ff_set_lane_state", lane_id=lane, state=state, **args)


def lane_events(db):
    return table(db, "select * from ff_event where event_type = 'lane_state_changed' order by event_id")


@pytest.mark.parametrize("state", STATES)
def test_an_unknown_lane_is_created_in_the_state_asked_for(db, clock, state):
    now = clock.freeze()
    assert set_state(db, state, "new lane ~!", reason="because") == {
        "outcome": "created",
        "previous_state": None,
        "state": state,
    }
    assert rows(db, "ff_list_lanes") == [
        {
            "lane_id": "new lane ~!",
            "state": state,
            "state_reason": "because",
            "state_changed_at_ms": now,
            "registered_at_ms": now,
            "registered_by": "set_lane_state",
        }
    ]
    (event,) = lane_events(db)
    assert (event["family"], event["lane_id"], event["reason"]) == ("operator", "new lane ~!", "because")
    assert event["details"] == {"previous_state": None, "state": state}


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_a_change_is_recorded_and_a_repetition_is_not(db, clock, before, after):
    start = clock.freeze()
    set_state(db, before, reason="first")
    clock.advance(5)
    same = before == after
    assert set_state(db, after, reason="second") == {
        "outcome": "unchanged" if same else "changed",
        "previous_state": before,
        "state": after,
    }
    (lane,) = rows(db, "ff_list_lanes")
    assert (lane["state"], lane["state_reason"]) == (after, "first" if same else "second")
    assert (lane["state_changed_at_ms"], lane["registered_at_ms"]) == (start + (0 if same else 5), start)
    assert [e["details"] for e in lane_events(db)[1:]] == (
        [] if same else [{"previous_state": before, "state": after}]
    )
    assert violations(db) == []


@pytest.mark.parametrize(
    ("state", "submits", "claims"),
    [
        ("active", True, True),
        ("paused", True, False),
        ("draining", False, True),
        ("disabled", False, False),
    ],
)
def test_what_each_state_lets_through(db, clock, state, submits, claims):
    clock.freeze()
    policy = {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}
    create(db, priority=9)
    held = take(db)
    create(db, priority=8, policy=policy)
    failing = take(db)
    create(db, idempotency_key="k")
    set_state(db, state)
    if submits:
        create(db)
    else:
        with refused("lane_not_accepting") as refusal:
            create(db)
        assert refusal.detail["lane_id"] == "default"
    # A duplicate is answered in every state, and what is held goes on and ends.
    assert one(db, "ff_create_execution", lane_id="default", idempotency_key="k")["outcome"] == "duplicate"
    clock.advance(1)
    assert one(db, "ff_renew", handle=held["handle"])["lease_expires_at_ms"] == clock.now() + 30_000
    assert one(db, "ff_complete", handle=held["handle"])["outcome"] == "completed"
    assert one(db, "ff_fail", handle=failing["handle"])["public_state"] == "waiting"  # a retry is no submit
    assert (claim(db) is not None) == claims
    assert violations(db) == []


@pytest.mark.own_session("LISTEN")
def test_a_lane_that_is_resumed_notifies_waiting_workers(db, connect):
    create(db)
    set_state(db, "paused")
    assert claim(db) is None
    db.execute("update ff_lane_registry set wake_armed = true")
    listener = connect()
    listener.execute("listen ff_lane")
    set_state(db, "disabled")
    assert notifications(listener) == []
    set_state(db, "active")
    assert notifications(listener) == [("ff_lane", "default")]


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"lane_id": None}, "invalid_input"),
        ({"lane_id": ""}, "invalid_lane_id"),
        ({"lane_id": "x" * 65}, "invalid_lane_id"),
        ({"lane_id": "a\tb"}, "invalid_lane_id"),
        ({"lane_id": "ä"}, "invalid_lane_id"),
        ({"state": None}, "invalid_input"),
        ({"state": ""}, "invalid_input"),
        ({"state": "ACTIVE"}, "invalid_input"),
        ({"state": "stopped"}, "invalid_input"),
        ({"reason": "a\nb"}, "invalid_input"),
    ],
)
def test_bad_input_changes_no_lane(db, args, kind):
    with refused(kind) as refusal:
        one(db, "ff_set_lane_state", **{"lane_id": "default", "state": "active", **args})
    if kind == "invalid_input":
        assert refusal.detail["arg"] == f"p_{next(iter(args))}"
    assert rows(db, "ff_list_lanes") == []
    assert lane_events(db) == []


def test_the_longest_lane_id_has_64_bytes(db):
    assert set_state(db, "active", "~" * 64)["outcome"] == "created"


def test_a_submission_registers_its_lane(db, clock):
    now = clock.freeze()
    create(db, "fresh")
    (lane,) = rows(db, "ff_list_lanes")
    assert (lane["lane_id"], lane["state"], lane["state_reason"]) == ("fresh", "active", None)
    assert (lane["registered_by"], lane["registered_at_ms"]) == ("create_execution", now)


def test_lanes_are_listed_by_their_bytes_page_by_page(db):
    names = sorted(["b", "a", "B", "a b", "~", "0", "aa"], key=str.encode)
    for name in reversed(names):
        set_state(db, "active", name)
    for size in (1, 2, 3, 7, 1000):
        found, after = [], None
        while page := rows(db, "ff_list_lanes", after=after, limit=size):
            found += [row["lane_id"] for row in page]
            after = found[-1]
        assert found == names
    assert [row["lane_id"] for row in rows(db, "ff_list_lanes", after="a!")] == ["aa", "b", "~"]
    assert rows(db, "ff_list_lanes", limit=0) == []


@pytest.mark.parametrize("limit", [None, -1, 1001, 2**31 - 1])
def test_a_page_size_out_of_range_is_refused(db, limit):
    with refused("invalid_input") as refusal:
        rows(db, "ff_list_lanes", limit=limit)
    assert refusal.detail["arg"] == "p_limit"
