"""max_execution_bytes: how large the payload and the result of an execution may be."""

import pytest
from psycopg.types.json import Jsonb

from tests.sql import create, one, refused, rows, take, violations

MEBIBYTE = 1024 * 1024
SMALL, LARGE = b"x" * 1024, b"x" * 1025


@pytest.fixture
def least(db):
    """The smallest limit."""
    one(db, "ff_set_setting", name="max_execution_bytes", value="1024")


def held(db):
    create(db)
    return take(db)


def fence(lease):
    return {name: lease[name] for name in ("execution_id", "lease_id", "lease_epoch", "attempt_id")}


CALLS = {
    "create": lambda db, data: create(db, payload=data),
    "create with a policy": lambda db, data: create(db, payload=data, policy={"priority": 1}),
    "schedule": lambda db, data: one(
        db, "ff_create_schedule", schedule_id="s", lane_id="default", interval_ms=1000, payload=data
    ),
    "submit_flow": lambda db, data: rows(
        db,
        "ff_submit_flow",
        nodes=Jsonb([{"key": "a", "lane_id": "default", "payload": data.decode()}]),
    ),
    "complete": lambda db, data: one(db, "ff_complete", handle=held(db)["handle"], result=data),
    "complete_execution": lambda db, data: one(db, "ff_complete_execution", **fence(held(db)), result=data),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("least")
def test_a_payload_or_result_above_the_limit_is_refused_with_its_size(db, name):
    with refused("payload_too_large") as refusal:
        CALLS[name](db, LARGE)
    assert (refusal.detail["size"], refusal.detail["limit"]) == (1025, 1024)
    assert "max_execution_bytes" in (refusal.error.diag.message_hint or "")
    CALLS[name](db, SMALL)
    assert violations(db) == []


@pytest.mark.usefixtures("least")
def test_one_payload_above_the_limit_refuses_the_whole_batch(db):
    with refused("payload_too_large") as refusal:
        rows(db, "ff_create_executions", lane_id="default", payloads=[SMALL, LARGE, LARGE])
    assert (refusal.detail["index"], refusal.detail["size"], refusal.detail["limit"]) == (2, 1025, 1024)
    assert rows(db, "ff_list_executions") == []


@pytest.mark.usefixtures("least")
def test_a_node_above_the_limit_is_named(db):
    nodes = [{"key": "a", "lane_id": "l"}, {"key": "b", "lane_id": "l", "payload": LARGE.decode()}]
    with refused("payload_too_large") as refusal:
        rows(db, "ff_submit_flow", nodes=Jsonb(nodes))
    assert (refusal.detail["node"], refusal.detail["size"]) == ("b", 1025)


@pytest.mark.usefixtures("least")
def test_a_batch_completes_all_but_the_results_above_the_limit(db):
    leases = [held(db) for _ in range(3)]
    done = rows(
        db,
        "ff_complete_many",
        handles=[lease["handle"] for lease in leases],
        results=[SMALL, LARGE, None],
    )
    assert [(r["outcome"], r["error_kind"]) for r in done] == [
        ("completed", None),
        ("refused", "payload_too_large"),
        ("completed", None),
    ]
    assert one(db, "ff_complete", handle=leases[1]["handle"], result=SMALL)["replayed"] is False
    assert violations(db) == []


def test_16_mebibytes_are_the_default_limit(db):
    assert one(db, "ff_setting", name="max_execution_bytes")["value"] == str(16 * MEBIBYTE)
    create(db, payload=b"x" * (16 * MEBIBYTE))
    with refused("payload_too_large") as refusal:
        create(db, payload=b"x" * (16 * MEBIBYTE + 1))
    assert (refusal.detail["size"], refusal.detail["limit"]) == (16 * MEBIBYTE + 1, 16 * MEBIBYTE)


def test_a_lower_limit_leaves_what_is_stored_as_it_is(db):
    eid = create(db, payload=b"x" * 5000)
    one(db, "ff_set_setting", name="max_execution_bytes", value="1024")
    assert len(take(db)["payload"]) == 5000
    assert one(db, "ff_read_execution_context", execution_id=eid)["payload"] == b"x" * 5000


@pytest.mark.parametrize("value", ["0", "1023", "536870913", "999999999999", "-1", "1e6", "many", ""])
def test_the_limit_is_between_a_kibibyte_and_512_mebibytes(db, value):
    with refused("invalid_input") as refusal:
        one(db, "ff_set_setting", name="max_execution_bytes", value=value)
    assert refusal.detail["arg"] == "p_value"


@pytest.mark.parametrize("value", ["1024", "536870912"])
def test_both_ends_of_the_range_are_accepted(db, value):
    assert one(db, "ff_set_setting", name="max_execution_bytes", value=value)["value"] == value
