"""A whole graph in one call, all or nothing."""

import base64
import os
import uuid
from itertools import pairwise
from pathlib import Path

import pytest

from tests.flows.graph import describe, edge, finish, flow, flow_events, group, state, submit
from tests.sql import claim, create, execution, one, refused, rows, table, take, violations


def n(key, **more):
    return {"key": key, "lane_id": "default", **more}


def e(origin, to, **more):
    return {"from": origin, "to": to, **more}


def by_key(made):
    return {row["node_key"]: row["execution_id"] for row in made}


def test_a_graph_is_submitted_with_its_edges_and_groups(db):
    made = submit(
        db,
        [n("a"), n("b", priority=7), n("c"), n("d")],
        [
            e("a", "c", data_passing_ref="x"),
            e("b", "c", dependency_kind="any_terminal"),
            e("c", "d"),
        ],
        [{"to": "c", "policy": "quorum", "k": 1, "on_satisfied": "let_run"}],
        flow_kind="etl",
        namespace="ns",
        tags={"a.b": "c"},
    )
    assert [row["node_key"] for row in made] == ["a", "b", "c", "d"]
    fid, ids = made[0]["flow_id"], by_key(made)
    assert {row["flow_id"] for row in made} == {fid}
    found = describe(db, fid)
    assert (found["public_flow_state"], found["flow_kind"], found["namespace"], found["tags"]) == (
        "open",
        "etl",
        "ns",
        {"a.b": "c"},
    )
    assert (found["node_count"], found["edge_count"], found["graph_revision"]) == (4, 3, 7)
    assert [state(db, ids[key]) for key in "abcd"] == [
        "waiting",
        "waiting",
        "waiting_children",
        "waiting_children",
    ]
    assert execution(db, ids["a"])["namespace"] == "ns"
    assert edge(db, fid, ids["a"], ids["c"])["data_passing_ref"] == "x"
    assert edge(db, fid, ids["b"], ids["c"])["dependency_kind"] == "any_terminal"
    found = group(db, fid, ids["c"])
    assert (found["policy"], found["k"], found["on_satisfied"], found["n_edges"]) == (
        "quorum",
        1,
        "let_run",
        2,
    )
    assert flow_events(db, fid) == ["created"]
    assert violations(db) == []
    assert take(db)["execution_id"] == ids["b"]
    finish(db, ids["a"])
    assert state(db, ids["c"]) == "waiting"
    assert violations(db) == []


def test_a_node_takes_what_an_execution_takes(db, clock):
    now = clock.freeze()
    mine = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
    made = submit(
        db,
        [
            n(
                "a",
                execution_kind="k",
                payload="häl",
                idempotency_key="i",
                priority=3,
                policy={"max_replay_count": 1, "retention_ms": 5},
                tags={"a.b": "c"},
                required_capabilities=["z", "y"],
                delay_ms=10,
                deadline_at_ms=now + 100,
                namespace="other",
                payload_encoding="utf8",
                creator="me",
                execution_id=f"{{fp:7}}:{mine}",
            ),
            n("b", payload_base64=base64.b64encode(b"\x00\xff").decode(), payload=None),
            n("c", delay_until_ms=now + 10),
        ],
        [e("a", "b"), e("a", "c")],
        flow_id=uuid.UUID(int=7),
    )
    ids = by_key(made)
    assert ids["a"] == f"{{fp:7}}:{mine}"
    row = one(db, "ff_describe_execution", execution_id=ids["a"])
    assert (row["namespace"], row["priority"], row["creator"], row["tags"]) == (
        "other",
        3,
        "me",
        {"a.b": "c"},
    )
    assert (row["required_capabilities"], row["delay_until_ms"], row["deadline_at_ms"]) == (
        ["y", "z"],
        now + 10,
        now + 100,
    )
    assert (row["policy"]["max_replay_count"], row["public_state"]) == (1, "delayed")
    read = one(db, "ff_read_execution_context", execution_id=ids["a"])
    assert (read["payload"], read["payload_encoding"], read["execution_kind"]) == (
        "häl".encode(),
        "utf8",
        "k",
    )
    assert one(db, "ff_read_execution_context", execution_id=ids["b"])["payload"] == b"\x00\xff"
    clock.advance(10)
    assert claim(db, capabilities=["y"]) is None
    one(db, "ff_complete", handle=take(db, capabilities=["y", "z"])["handle"])
    assert [state(db, ids[key]) for key in "bc"] == ["waiting", "waiting"]
    with refused("idempotency_conflict"):
        submit(db, [n("x", idempotency_key="i", namespace="other")])
    assert violations(db) == []


@pytest.mark.parametrize(
    ("kind", "graph"),
    [
        ("invalid_input", ([],)),
        ("invalid_input", (["x"],)),
        ("invalid_input", ([{"lane_id": "l"}],)),
        ("invalid_input", ([{"key": "a"}],)),
        ("invalid_input", ([{"key": 1, "lane_id": "l"}],)),
        ("invalid_input", ([n("")],)),
        ("invalid_input", ([n("x" * 257)],)),
        ("invalid_input", ([n("a"), n("a")],)),
        ("invalid_input", ([n("a", colour="red")],)),
        ("invalid_input", ([n("a", flow_id="x")],)),
        ("invalid_input", ([n("a", priority="1")],)),
        ("invalid_input", ([n("a", priority=1.5)],)),
        ("invalid_input", ([n("a", priority=2**31)],)),
        ("invalid_input", ([n("a", delay_ms=2**63)],)),
        ("invalid_input", ([n("a", delay_ms=1, delay_until_ms=1)],)),
        ("invalid_input", ([n("a", payload="x", payload_base64="eA==")],)),
        ("invalid_input", ([n("a", payload_base64="x")],)),
        ("invalid_input", ([n("a", payload_base64="eA=\n=")],)),
        ("invalid_input", ([n("a", namespace="")],)),
        ("invalid_input", ([n("a", idempotency_key="x" * 513)],)),
        ("invalid_lane_id", ([{"key": "a", "lane_id": ""}],)),
        ("invalid_policy", ([n("a", policy={"x": 1})],)),
        ("invalid_capabilities", ([n("a", required_capabilities=[1])],)),
        ("invalid_capabilities", ([n("a", required_capabilities=["a b"])],)),
        ("invalid_tag_key", ([n("a", tags={"A": "b"})],)),
        ("invalid_execution_id", ([n("a", execution_id="x")],)),
        ("invalid_execution_id", ([n("a", execution_id="{fp:8}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07")],)),
        ("partition_mismatch", ([n("a", execution_id="{fp:8}:018f3a2e-7b6c-7d1e-9f00-aabbccddee08")],)),
        (
            "invalid_input",
            ([n(key, execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07") for key in "ab"],),
        ),
        ("invalid_input", ([n("a")], ["x"])),
        ("invalid_input", ([n("a"), n("b")], [e("a", "c")])),
        ("invalid_input", ([n("a"), n("b")], [e("a", None)])),
        ("invalid_input", ([n("a"), n("b")], [e("a", "b", x=1)])),
        ("invalid_input", ([n("a"), n("b")], [e("a", "b", data_passing_ref="x" * 4097)])),
        ("self_referencing_edge", ([n("a")], [e("a", "a")])),
        ("invalid_dependency_kind", ([n("a"), n("b")], [e("a", "b", dependency_kind="x")])),
        ("dependency_already_exists", ([n("a"), n("b")], [e("a", "b"), e("a", "b")])),
        ("cycle_detected", ([n("a"), n("b")], [e("a", "b"), e("b", "a")])),
        ("invalid_input", ([n("a")], [], [{"to": "b", "policy": "any_of"}])),
        ("invalid_input", ([n("a")], [], [{"to": "a", "policy": "x"}])),
        ("invalid_input", ([n("a")], [], [{"to": "a"}])),
        ("invalid_input", ([n("a")], [], [{"to": "a", "policy": "quorum"}])),
        ("invalid_input", ([n("a")], [], [{"to": "a", "policy": "quorum", "k": 1.5}])),
        ("invalid_input", ([n("a")], [], [{"to": "a", "policy": "any_of", "on_satisfied": "x"}])),
        ("invalid_input", ([n("a")], [], [{"to": "a", "policy": "any_of"}, {"to": "a", "policy": "any_of"}])),
        (
            "quorum_unreachable",
            ([n("a"), n("b")], [e("a", "b")], [{"to": "b", "policy": "quorum", "k": 2}]),
        ),
        ("quorum_unreachable", ([n("a")], [], [{"to": "a", "policy": "quorum", "k": 1}])),
    ],
)
def test_a_graph_that_is_wrong_is_refused_as_a_whole(db, kind, graph):
    with refused(kind):
        submit(db, *graph, flow_id=uuid.UUID(int=7))
    for name in (
        "ff_flow_core",
        "ff_exec_core",
        "ff_exec_input",
        "ff_edge",
        "ff_edge_group",
        "ff_lane_registry",
    ):
        assert table(db, f"select * from {name}") == []


def test_a_refusal_names_the_node(db):
    with refused("invalid_policy") as refusal:
        submit(db, [n("good"), n("bad", policy={"priority": "x"})])
    assert (refusal.detail["node"], refusal.detail["path"]) == ("bad", "priority")
    with refused("invalid_input") as refusal:
        submit(db, [n("good"), n("b", lane=1)])
    assert (refusal.detail["index"], refusal.detail["key"]) == (1, "lane")


def test_unknown_keys_come_before_the_flow_id_and_that_before_the_rest(db):
    fid = flow(db)
    with refused("invalid_input"):
        submit(db, [n("a", colour=1)], flow_id=fid)
    with refused("flow_conflict"):
        submit(db, [n("a", policy={"x": 1})], flow_id=fid)
    with refused("invalid_input"):
        submit(db, [n("a")], namespace="")


def test_a_lane_that_takes_no_work_and_an_id_that_exists_are_refused(db):
    one(db, "ff_set_lane_state", lane_id="shut", state="draining")
    with refused("lane_not_accepting"):
        submit(db, [n("a"), {"key": "b", "lane_id": "shut"}])
    create(db, execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
    with refused("execution_id_conflict"):
        submit(
            db, [n("a", execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07")], flow_id=uuid.UUID(int=7)
        )


@pytest.mark.parametrize("tail", [0, 3])
def test_the_cycle_itself_is_named_and_not_what_leads_to_it(db, tail):
    cycle = [f"r{i}" for i in range(5)]
    before = [f"t{i}" for i in range(tail)]
    path = [*before, *cycle]
    edges = [e(a, b) for a, b in pairwise(path)] + [e("r4", "r0"), e("r2", "end")]
    with refused("cycle_detected") as refusal:
        submit(db, [n(key) for key in ["end", *path]], edges)
    found = refusal.detail["path"]
    assert sorted(found) == cycle
    assert all(e(a, b) in edges for a, b in zip(found, [*found[1:], found[0]], strict=True))


def computed(pid):
    """The seconds that a process has used a processor."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_ten_thousand_nodes_take_a_time_that_grows_with_their_number(db):
    """Not a benchmark: quadratic work would take minutes. Measures the processor time of the server."""
    pid = table(db, "select pg_backend_pid() as pid")[0]["pid"]
    if not Path(f"/proc/{pid}/stat").exists():
        pytest.skip("the processor time of the server cannot be seen from here")
    taken = {}
    for size in (1000, 10_000):
        nodes = [n(f"n{i}") for i in range(size)]
        edges = [e(f"n{i // 2}", f"n{i}") for i in range(1, size)] + [
            e(f"n{i}", f"n{i + 1}") for i in range(2, size - 1, 2)
        ]
        began = computed(pid)
        made = submit(db, nodes, edges)
        taken[size] = computed(pid) - began
        assert len(made) == size
    assert taken[10_000] < 30 * taken[1000] + 1


def test_the_members_of_a_submitted_flow_are_handed_out_in_their_order(db):
    made = submit(db, [n(f"n{i}") for i in range(5)])
    got = rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w")
    assert [row["execution_id"] for row in got] == [row["execution_id"] for row in made]
