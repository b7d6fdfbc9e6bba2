"""`pyff flow show`."""

import re
import uuid

import pytest

from pyff.cli import main
from pyff.engine import Engine
from tests.flows.graph import begin, finish, node, policy, submit
from tests.sql import one


@pytest.fixture
def race(db):
    """Two of three must succeed; one has failed, one runs."""
    keys = ("root", "left", "mid", "right", "join")
    made = submit(
        db,
        [{"key": key, "lane_id": "default", "execution_kind": key} for key in keys],
        [
            *({"from": "root", "to": key} for key in keys[1:4]),
            *({"from": key, "to": "join"} for key in keys[1:3]),
            {"from": "right", "to": "join", "dependency_kind": "any_terminal"},
        ],
        [{"to": "join", "policy": "quorum", "k": 2, "on_satisfied": "let_run"}],
    )
    ids = {row["node_key"]: row["execution_id"] for row in made}
    finish(db, ids["root"])
    finish(db, ids["left"], "failed")
    begin(db, ids["mid"])
    return made[0]["flow_id"]


def show(capsys, dsn, *args):
    code = main(["flow", "show", *map(str, args), "--dsn", dsn])
    return code, capsys.readouterr()


def test_a_flow_is_drawn_as_a_tree(db, dsn, race, capsys):
    code, out = show(capsys, dsn, race)
    assert code == 0
    drawn = re.sub(r"-[0-9a-f]{8} ", " ", out.out).splitlines()
    assert drawn[0] == f"flow {race} dag in default: open (running), 5 members"
    assert drawn[1:] == [
        "1 root ✓ completed",
        "├─ 2 left ✗ failed",
        "├─ 3 mid ▶ active",
        "└─ 4 right ○ waiting",
        "   └─ 5 join … waiting_children [2 of 3] (after 2, 3 too)",
    ]


def test_a_flow_is_printed_for_graphviz_and_mermaid(db, dsn, race, capsys):
    _, out = show(capsys, dsn, race, "--dot")
    assert out.out.startswith("digraph flow {")
    assert out.out.count(" -> ") == 6
    assert out.out.count("style=dashed") == 1
    assert re.search(r'n2 \[label="left-[0-9a-f]{8}\\nfailed", fillcolor="#ffccd5"\];', out.out)
    _, out = show(capsys, dsn, race, "--mermaid")
    assert out.out.startswith("flowchart LR")
    assert re.search(r'n5\["join-[0-9a-f]{8}<br/>waiting_children \[2 of 3\]"\]:::waiting_children', out.out)
    assert out.out.count("-->") == 5
    assert out.out.count("-.->") == 1


def test_a_flow_of_many_pages_and_a_cancelled_one_are_drawn(db, dsn, capsys):
    made = submit(db, [{"key": str(i), "lane_id": "default"} for i in range(1100)])
    fid = made[0]["flow_id"]
    policy(db, fid, node(db, fid), "any_of")
    one(db, "ff_cancel_flow", flow_id=fid, policy="cancel_flow_only", reason="enough")
    _, out = show(capsys, dsn, fid)
    assert len(out.out.splitlines()) == 1102
    assert "cancelled (open), cancel_flow_only: enough" in out.out
    assert "[any_of]" in out.out


def test_a_flow_that_grows_while_it_is_read_is_drawn_without_what_came_later(
    db, dsn, race, capsys, monkeypatch
):
    """As one does whose tasks spawn children."""
    seen = Engine.list_flow_members
    grown = []

    def grow(engine, flow_id, **args):
        page = seen(engine, flow_id, **args)
        if not page and not grown:
            upstream = one(db, "ff_list_flow_members", flow_id=flow_id, limit=1)["execution_id"]
            grown.append(node(db, flow_id))
            one(
                db,
                "ff_add_dependency",
                flow_id=flow_id,
                upstream_execution_id=upstream,
                downstream_execution_id=grown[0],
            )
        return page

    monkeypatch.setattr(Engine, "list_flow_members", grow)
    for form in ([], ["--dot"], ["--mermaid"], ["--json"]):
        code, out = show(capsys, dsn, race, *form)
        assert (code, out.err) == (0, ""), form
        grown.clear()


def test_an_unknown_flow_and_a_bad_id_are_refused(db, dsn, capsys):
    code, out = show(capsys, dsn, uuid.uuid4())
    assert code != 0
    assert "there is no flow" in out.err
    with pytest.raises(SystemExit):
        main(["flow", "show", "x"])
    assert "is not a uuid" in capsys.readouterr().err


def test_without_a_database_it_says_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PYFF_HOME", str(tmp_path))
    monkeypatch.delenv("PYFF_DSN", raising=False)
    assert main(["flow", "show", str(uuid.uuid4())]) != 0
    assert "--dsn" in capsys.readouterr().err


def test_an_empty_flow_is_a_headline(db, dsn, capsys):
    fid = one(db, "ff_create_flow", hold=True)["flow_id"]
    _, out = show(capsys, dsn, fid)
    assert out.out == f"flow {fid} dag in default: building (open), 0 members\n"
