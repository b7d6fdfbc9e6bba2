"""Lists, descriptions, projections and retention of flows."""

import pytest

from tests.flows.graph import (
    begin,
    busy_flows,
    chain,
    describe,
    fan_in,
    finish,
    flow,
    link,
    node,
    nodes,
    strange_flow,
)
from tests.sql import claim, create, one, refused, rows, table, violations


def test_flows_are_listed_by_id_in_pages(db):
    flows = sorted(flow(db, namespace="a" if i % 2 else "b") for i in range(5))
    first = rows(db, "ff_list_flows", limit=2)
    rest = rows(db, "ff_list_flows", after=first[-1]["flow_id"])
    assert [r["flow_id"] for r in first + rest] == flows
    assert len(rows(db, "ff_list_flows", namespace="a")) == 2
    assert [r["flow_id"] for r in rows(db, "ff_list_flows", partition=flows[0].bytes[15])][:1] == flows[:1]
    finish(db, node(db, flows[0]))
    one(db, "ff_cancel_flow", flow_id=flows[1])
    found = {r["flow_id"]: (r["public_flow_state"], r["status"]) for r in rows(db, "ff_list_flows")}
    assert [found[f] for f in flows[:3]] == [
        ("completed", "completed"),
        ("cancelled", "cancelled"),
        ("open", "active"),
    ]
    assert [r["flow_id"] for r in rows(db, "ff_list_flows", state="cancelled")] == [flows[1]]
    assert rows(db, "ff_list_flows", limit=0) == []
    for wrong in ({"state": "active"}, {"partition": 256}, {"limit": 1001}, {"limit": -1}):
        with refused("invalid_input"):
            rows(db, "ff_list_flows", **wrong)


def test_members_groups_and_edges_are_listed_in_pages(db):
    fid, ups, child = fan_in(db, 4)
    members = sorted([*ups, child], key=lambda e: e[-36:])
    first = rows(db, "ff_list_flow_members", flow_id=fid, limit=2)
    rest = rows(db, "ff_list_flow_members", flow_id=fid, after=first[-1]["execution_id"])
    assert [r["execution_id"] for r in first + rest] == members
    waiting = rows(db, "ff_list_flow_members", flow_id=fid, public_state="waiting_children")
    assert [r["execution_id"] for r in waiting] == [child]
    edges = rows(db, "ff_list_edges", flow_id=fid)
    assert len(edges) == 4
    half = rows(db, "ff_list_edges", flow_id=fid, limit=2)
    assert half + rows(db, "ff_list_edges", flow_id=fid, after=half[-1]["edge_id"]) == edges
    listed = {
        direction: len(rows(db, "ff_list_edges", flow_id=fid, execution_id=child, direction=direction))
        for direction in ("incoming", "outgoing", None)
    }
    assert listed == {"incoming": 4, "outgoing": 0, None: 4}
    other = node(db, fid)
    link(db, fid, child, other)
    groups = rows(db, "ff_list_edge_groups", flow_id=fid, limit=1)
    groups += rows(db, "ff_list_edge_groups", flow_id=fid, after=groups[0]["downstream_execution_id"])
    assert sorted(g["downstream_execution_id"] for g in groups) == sorted([child, other])
    assert one(db, "ff_describe_edge", flow_id=fid, edge_id=edges[0]["edge_id"]) == edges[0]


def test_what_is_unknown_has_no_rows(db):
    missing, eid = strange_flow(), "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    for function, args in [
        ("ff_describe_flow", {}),
        ("ff_list_flow_members", {}),
        ("ff_list_edge_groups", {}),
        ("ff_list_edges", {}),
        ("ff_list_edges", {"execution_id": eid}),
        ("ff_list_edges", {"execution_id": "{fp:8}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"}),
        ("ff_describe_edge", {"edge_id": missing}),
        ("ff_get_flow_tag", {"key": "a.b"}),
    ]:
        assert rows(db, function, flow_id=missing, **args) == []
    assert rows(db, "ff_read_dependency_inputs", execution_id=eid) == []
    assert rows(db, "ff_resolve_execution_flow_id", execution_id=create(db)) == []


@pytest.mark.parametrize(
    ("kind", "function", "args"),
    [
        ("invalid_input", "ff_list_edges", {"direction": "up"}),
        ("invalid_execution_id", "ff_list_edges", {"execution_id": "x"}),
        ("invalid_cursor", "ff_list_flow_members", {"after": "x"}),
        ("invalid_cursor", "ff_list_edge_groups", {"after": ""}),
        ("invalid_input", "ff_list_flow_members", {"public_state": "x"}),
        ("invalid_input", "ff_list_flow_members", {"limit": None}),
        ("invalid_input", "ff_describe_flow", {"flow_id": None}),
        ("invalid_input", "ff_describe_edge", {"edge_id": None}),
        ("invalid_input", "ff_get_flow_tag", {"key": None}),
        ("flow_not_found", "ff_project_flow_summary", {}),
    ],
)
def test_reads_check_their_arguments(db, kind, function, args):
    with refused(kind):
        rows(db, function, **{"flow_id": strange_flow(), **args})


def test_a_flow_is_projected(db, clock):
    clock.freeze()
    fid, (a, b) = chain(db, 2)
    assert one(db, "ff_project_flow_summary", flow_id=flow(db))["projected"] is False
    found = one(db, "ff_project_flow_summary", flow_id=fid)
    assert (found["projected"], found["derived_state"], found["total_members"]) == (True, "open", 2)
    assert (found["members_waiting"], found["members_waiting_children"]) == (1, 1)
    assert one(db, "ff_project_flow_summary", flow_id=fid) == found
    clock.advance(1)
    assert one(db, "ff_project_flows")["processed"] == 1
    finish(db, a)
    finish(db, b)
    clock.advance(1)
    assert one(db, "ff_project_flows") == {"processed": 1, "errors": 0, "more": False}
    clock.advance(1)
    assert one(db, "ff_project_flows")["processed"] == 0
    (stored,) = table(db, "select * from ff_flow_summary")
    assert (stored["derived_state"], stored["members_completed"]) == ("completed", 2)
    assert violations(db) == []


def trim(db, **args):
    return one(db, "ff_trim_retention", **args)


def test_a_flow_is_trimmed_as_a_whole_and_counts_one(db, clock):
    clock.freeze()
    fid, (a, b) = chain(db, 2)
    one(db, "ff_project_flow_summary", flow_id=fid)
    solo = create(db)
    finish(db, solo)
    finish(db, a)
    clock.advance(1000)
    assert trim(db, retention_ms=500)["processed"] == 1
    finish(db, b)
    clock.advance(499)
    assert trim(db, retention_ms=500)["processed"] == 0
    clock.advance(1)
    assert trim(db, retention_ms=500, lane_id="default")["processed"] == 0
    assert trim(db, retention_ms=500, namespace="other")["processed"] == 0
    assert trim(db, retention_ms=500, limit=0)["processed"] == 0
    assert trim(db, retention_ms=500) == {"processed": 1, "errors": 0, "more": False}
    for name in (
        "ff_flow_core",
        "ff_edge",
        "ff_edge_group",
        "ff_flow_summary",
        "ff_exec_core",
        "ff_exec_input",
    ):
        assert table(db, f"select * from {name}") == []
    assert table(db, "select * from ff_attempt") == []
    assert violations(db) == []


def test_a_flow_is_kept_while_something_in_it_lives_or_waits_for_dispatch(db, clock):
    clock.freeze()
    fid, (a, _) = chain(db, 2)
    row = begin(db, a)
    one(db, "ff_cancel_flow", flow_id=fid, policy="cancel_flow_only")
    clock.advance(10**6)
    assert trim(db, retention_ms=0)["processed"] == 0
    _, (c,) = chain(db, 1)
    with busy_flows(db):
        finish(db, c)
    clock.advance(10**6)
    assert trim(db, retention_ms=0)["processed"] == 0
    assert claim(db, "nowhere") is None
    assert row


def test_the_longest_retention_of_its_members_keeps_a_flow(db, clock):
    clock.freeze()
    fid = flow(db)
    for policy in ({"retention_ms": 10}, {"retention_ms": 2000}):
        finish(db, node(db, fid, policy=policy))
    short = flow(db)
    finish(db, node(db, short, policy={"retention_ms": 10}))
    clock.advance(1000)
    assert trim(db, retention_ms=500)["processed"] == 1
    assert rows(db, "ff_describe_flow", flow_id=short) == []
    clock.advance(999)
    assert trim(db, retention_ms=500)["processed"] == 0
    clock.advance(1)
    assert trim(db, retention_ms=500)["processed"] == 1
    assert table(db, "select * from ff_exec_core") == []


def test_empty_flows_are_trimmed_by_their_age(db, clock):
    clock.freeze()
    flow(db)
    one(db, "ff_cancel_flow", flow_id=flow(db))
    kept = flow(db)
    node(db, kept)
    clock.advance(1000)
    young = flow(db)
    assert trim(db, retention_ms=1000)["processed"] == 2
    assert sorted(r["flow_id"] for r in rows(db, "ff_list_flows")) == sorted([kept, young])
    assert describe(db, young)["node_count"] == 0
    assert violations(db) == []


def test_a_limit_takes_solo_executions_and_flows_together(db, clock):
    clock.freeze()
    for _ in range(2):
        finish(db, create(db))
        finish(db, nodes(db, flow(db), 1)[0])
    clock.advance(10)
    assert trim(db, retention_ms=0, limit=3) == {"processed": 3, "errors": 0, "more": True}
    assert trim(db, retention_ms=0, limit=3) == {"processed": 1, "errors": 0, "more": False}
