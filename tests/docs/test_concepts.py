"""The diagram of the states: its boxes are the states of the database, its arrows are its transitions."""

import xml.etree.ElementTree as ET

import pytest
from psycopg.types.json import Jsonb

from tests.docs.blocks import ROOT
from tests.sql import claim, create, one, rows, table, take
from tests.suspensions.support import seed, suspended

PICTURE = ET.parse(ROOT / "docs" / "assets" / "states.svg").getroot()  # noqa: S314
SVG = "{http://www.w3.org/2000/svg}"
RETRY = Jsonb({"retry_policy": {"max_retries": 1}})


def state(db, execution_id):
    return one(db, "ff_read_execution_state", execution_id=execution_id)["public_state"]


def chain(db):
    nodes = [{"key": key, "lane_id": "default", "execution_kind": key} for key in "ab"]
    flow = rows(db, "ff_submit_flow", nodes=Jsonb(nodes), edges=Jsonb([{"from": "a", "to": "b"}]))
    return flow[1]["execution_id"]


def children(db):
    flow = one(db, "ff_create_flow")["flow_id"]
    parent = create(db, flow_id=flow)
    lease = take(db)
    child = create(db, flow_id=flow)
    one(db, "ff_add_dependency", flow_id=flow, upstream_execution_id=child, downstream_execution_id=parent)
    return parent, lease


# Each: brings an execution into the first state, and returns it with what leads to the second.
ARROWS = {
    ("waiting", "active"): lambda db, clock: (create(db), lambda: take(db)),
    ("active", "delayed"): lambda db, clock: held(db, "ff_fail", policy=RETRY),
    ("delayed", "waiting"): lambda db, clock: (
        eid := create(db, delay_ms=1000),
        lambda: (clock.advance(1000), one(db, "ff_promote_delayed", execution_id=eid)),
    ),
    ("waiting_children", "waiting"): lambda db, clock: (
        chain(db),
        lambda: one(db, "ff_complete", handle=take(db)["handle"]),
    ),
    ("active", "waiting_children"): lambda db, clock: waits(db),
    ("active", "suspended"): lambda db, clock: held(
        db, "ff_suspend", condition=Jsonb({"kind": "timeout_only"}), timeout_ms=1000
    ),
    ("suspended", "resumable"): lambda db, clock: (
        eid := suspended(db)[0]["execution_id"],
        lambda: one(db, "ff_resume_execution", execution_id=eid),
    ),
    ("resumable", "active"): lambda db, clock: (
        (lease := take_new(db))["execution_id"],
        (one(db, "ff_delay", handle=lease["handle"], delay_ms=0), lambda: take(db))[1],
    ),
    ("active", "completed"): lambda db, clock: held(db, "ff_complete"),
    ("active", "failed"): lambda db, clock: held(db, "ff_fail", classification="permanent"),
    ("active", "active"): lambda db, clock: (
        take_new(db)["execution_id"],
        lambda: (clock.advance(60_000), take(db)),
    ),
    ("waiting_children", "skipped"): lambda db, clock: (
        chain(db),
        lambda: one(db, "ff_fail", handle=take(db)["handle"], classification="permanent"),
    ),
}
"""The two of rate_limited are driven by the tests of quotas and budgets."""


def take_new(db, **args):
    create(db, **args)
    return take(db)


def held(db, function, *, policy=None, **args):
    seed(db)
    lease = take_new(db, **({"policy": policy} if policy else {}))
    return lease["execution_id"], lambda: rows(db, function, handle=lease["handle"], **args)


def waits(db):
    parent, lease = children(db)
    return parent, lambda: rows(db, "ff_wait_children", handle=lease["handle"])


def test_the_boxes_are_the_public_states(db):
    drawn = [text.text for group in PICTURE.iter(f"{SVG}g") for text in group.iter(f"{SVG}text")]
    query = "select distinct public_state as state from ff_state_word"
    assert sorted(drawn) == sorted(row["state"] for row in table(db, query))


def test_every_arrow_is_driven():
    drawn = {(path.get("data-from"), path.get("data-to")) for path in PICTURE.iter(f"{SVG}path")}
    limits = {("waiting", "rate_limited"), ("rate_limited", "waiting")}
    assert drawn - {(None, None)} == ARROWS.keys() | limits


@pytest.mark.parametrize(("before", "after"), ARROWS)
def test_an_arrow_leads_where_it_says(db, clock, before, after):
    clock.freeze()
    execution_id, move = ARROWS[before, after](db, clock)
    assert state(db, execution_id) == before
    move()
    assert state(db, execution_id) == after


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_every_end_can_be_replayed(db, end):
    lease = take_new(db)
    verb = {"completed": "ff_complete", "failed": "ff_fail", "cancelled": "ff_cancel"}[end]
    one(db, verb, handle=lease["handle"])
    assert state(db, lease["execution_id"]) == end
    one(db, "ff_replay_execution", execution_id=lease["execution_id"])
    assert state(db, lease["execution_id"]) == "waiting"
    assert claim(db)["attempt_index"] == 1
