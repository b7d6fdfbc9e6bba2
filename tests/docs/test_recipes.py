"""Statements of the recipes besides their code."""

import time
from itertools import pairwise

import pytest
from psycopg.types.json import Jsonb

from tests.docs.blocks import ROOT, blocks
from tests.sql import claim, create, one, rows, table, take

STEPS = ["flight", "hotel", "car"]


@pytest.mark.parametrize(
    ("broken", "order"),
    [
        ("flight", ["flight"]),
        ("hotel", ["flight", "hotel", "undo_flight"]),
        ("car", ["flight", "hotel", "car", "undo_hotel", "undo_flight"]),
        (None, ["flight", "hotel", "car", "undo_hotel", "undo_flight"]),
    ],
)
def test_the_compensations_of_a_longer_saga_run_backwards(db, broken, order):
    edges = [{"from": a, "to": b} for a, b in pairwise(STEPS)]
    for step, following in pairwise(STEPS):
        edges += [
            {"from": step, "to": f"undo_{step}"},
            {"from": following, "to": f"undo_{step}", "dependency_kind": "any_terminal"},
        ]
    edges.append({"from": "undo_hotel", "to": "undo_flight", "dependency_kind": "any_terminal"})
    names = [*STEPS, "undo_flight", "undo_hotel"]
    nodes = [{"key": name, "lane_id": "trips", "execution_kind": name} for name in names]
    rows(db, "ff_submit_flow", nodes=Jsonb(nodes), edges=Jsonb(edges))
    done = []
    for _ in order:
        lease = take(db, "trips")
        done.append(lease["execution_kind"])
        if done[-1] == broken:
            one(db, "ff_fail", handle=lease["handle"], classification="permanent")
        else:
            one(db, "ff_complete", handle=lease["handle"])
    assert done == order
    assert claim(db, "trips") is None


def test_the_reader_counts_every_end_once(db, dsn):
    (setup,) = [text for text in blocks(ROOT / "docs" / "recipes.md", "sql") if "create procedure" in text]
    for _ in range(3):
        create(db)
        one(db, "ff_complete", handle=take(db)["handle"])
    db.execute(setup.partition("call read_on()")[0])
    until = time.monotonic() + 60  # writers elsewhere on the server may hold events back
    while (
        not (found := table(db, "select outcome, count(*) as n from report group by outcome"))
        or found[0]["n"] < 3
    ):
        assert time.monotonic() < until, found
        db.execute("call read_on()")
    db.execute("call read_on()")
    assert table(db, "select outcome, count(*) as n from report group by outcome") == [
        {"outcome": "success", "n": 3}
    ]
