"""The id of a deleted execution can be reused when nothing of it is kept."""

import pytest
from psycopg.types.json import Jsonb

from tests.sql import create, one, refused, rows, take, violations

DAY = 86_400_000
MINE = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"


def run_and_delete(db, **args):
    """An execution that completed and was deleted; its id."""
    eid = create(db, **args)
    one(db, "ff_complete", handle=take(db)["handle"])
    assert one(db, "ff_trim_retention", retention_ms=0)["processed"] == 1
    return eid


def forget_events(db):
    for family in ("lease", "completion"):
        one(db, "ff_set_event_family", family=family, retention_ms=0)
    while one(db, "ff_trim_events")["processed"]:
        pass


@pytest.mark.parametrize("payload", [None, b"other"])
def test_a_deleted_id_is_refused_while_its_events_are_kept(db, clock, payload):
    clock.freeze()
    run_and_delete(db, execution_id=MINE)
    with refused("execution_id_conflict") as refusal:
        create(db, execution_id=MINE, payload=payload)
    assert refusal.detail["execution_id"] == MINE
    clock.advance(1)
    forget_events(db)
    assert create(db, execution_id=MINE, payload=payload) == MINE
    assert violations(db) == []


@pytest.mark.parametrize("chosen", [True, False])
def test_a_deleted_id_is_refused_while_its_idempotency_key_lives(db, clock, chosen):
    clock.freeze()
    eid = run_and_delete(db, idempotency_key="k", **({"execution_id": MINE} if chosen else {}))
    clock.advance(1)
    forget_events(db)
    for args in ({}, {"idempotency_key": "other"}, {"idempotency_key": "k", "namespace": "other"}):
        with refused("execution_id_conflict"):
            create(db, execution_id=eid, **args)
    clock.advance(7 * DAY)
    assert create(db, execution_id=eid, payload=b"new") == eid
    assert violations(db) == []


def test_the_request_that_had_the_id_still_finds_its_key(db, clock):
    clock.freeze()
    run_and_delete(db, execution_id=MINE, idempotency_key="k")
    again = one(db, "ff_create_execution", lane_id="default", execution_id=MINE, idempotency_key="k")
    assert (again["outcome"], again["execution_id"], again["public_state"]) == ("duplicate", MINE, None)


def test_a_new_id_may_be_used_with_a_key_of_its_own(db):
    made = one(db, "ff_create_execution", lane_id="default", execution_id=MINE, idempotency_key="k")
    assert made["outcome"] == "created"


def test_a_node_of_a_flow_cannot_take_a_deleted_id_either(db, clock):
    clock.freeze()
    flow_id = "018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    nodes = Jsonb([{"key": "a", "lane_id": "default", "execution_id": MINE, "idempotency_key": "k"}])
    rows(db, "ff_submit_flow", nodes=nodes, flow_id=flow_id)
    one(db, "ff_complete", handle=take(db)["handle"])
    assert one(db, "ff_trim_retention", retention_ms=0)["processed"] == 1
    clock.advance(8 * DAY)
    with refused("execution_id_conflict") as refusal:
        rows(db, "ff_submit_flow", nodes=nodes, flow_id=flow_id)
    assert refusal.detail["node"] == "a"
    forget_events(db)
    assert rows(db, "ff_submit_flow", nodes=nodes, flow_id=flow_id)[0]["execution_id"] == MINE


def test_a_tick_whose_execution_was_deleted_is_not_fired_again(db, clock):
    start = 1_800_000_000_000
    clock.set(start)
    schedule = {"schedule_id": "s", "lane_id": "default", "interval_ms": 1000, "start_at_ms": start}
    for fired in (1, 0):
        one(db, "ff_create_schedule", **schedule)
        one(db, "ff_fire_schedules")
        waiting = rows(db, "ff_list_executions")
        assert len(waiting) == fired
        for _ in waiting:
            one(db, "ff_complete", handle=take(db)["handle"])
        one(db, "ff_trim_retention", retention_ms=0)
        assert one(db, "ff_describe_schedule", schedule_id="s")["error_count"] == 0
        one(db, "ff_delete_schedule", schedule_id="s")
