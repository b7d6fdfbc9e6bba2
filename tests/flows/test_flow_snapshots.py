"""What meets in time: older snapshots, busy rows, trims and projections beside everything else."""

import threading
import time

import pytest
from psycopg.types.json import Jsonb

from tests.flows.graph import apply, begin, chain, finish, flow, link, node, nodes, stage, state, undispatched
from tests.sql import claim, one, refused, rows, table, violations, wait_for_lock


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_an_end_with_an_older_snapshot_does_not_pass_an_edge_by(db, connect, isolation):
    fid = flow(db)
    up, down = nodes(db, fid, 2)
    edge = stage(db, fid, up, down)["edge_id"]
    lease = begin(db, up)
    old = connect(autocommit=False)
    old.execute(f"set transaction isolation level {isolation}")
    old.execute("select count(*) from ff_setting")
    apply(db, fid, edge)
    with pytest.raises(Exception, match="could not serialize"):
        one(old, "ff_complete", handle=lease["handle"])
    old.rollback()
    one(db, "ff_complete", handle=lease["handle"])
    assert claim(db)["execution_id"] == down
    assert violations(db) == []


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_a_child_that_was_busy_is_soon_found_however_many_others_end(db, connect, clock):
    clock.freeze()
    fid = flow(db)
    up, down = nodes(db, fid, 2)
    link(db, fid, up, down)
    others = nodes(db, fid, 12)
    leases = {eid: begin(db, eid) for eid in [up, *others]}
    holder = connect(autocommit=False)
    one(holder, "ff_set_execution_tag", execution_id=down, key="a.b", value="1")
    for lease in leases.values():
        one(db, "ff_complete", handle=lease["handle"])
    assert len(undispatched(db)) == 1
    holder.commit()
    clock.advance(500)
    assert claim(db)["execution_id"] == down


def test_a_flow_that_came_to_life_again_is_not_trimmed(db, connect, clock):
    clock.freeze()
    fid, (member,) = chain(db, 1)
    finish(db, member)
    clock.advance(5000)
    holder = connect(autocommit=False)
    one(holder, "ff_replay_execution", execution_id=member)
    assert one(db, "ff_trim_retention", retention_ms=3000)["processed"] == 0  # busy: left alone
    lease = claim(holder)
    one(holder, "ff_complete", handle=lease["handle"], result=b"new")
    holder.commit()
    assert one(db, "ff_trim_retention", retention_ms=3000)["processed"] == 0
    assert state(db, member) == "completed"
    clock.advance(3000)
    assert one(db, "ff_trim_retention", retention_ms=3000)["processed"] == 1
    assert fid is not None
    assert violations(db) == []


def test_projecting_and_trimming_never_wait_and_leave_nothing_behind(db, connect):
    fid, (member,) = chain(db, 1)
    finish(db, member)
    holder, other = connect(autocommit=False), connect()
    other.execute("set lock_timeout = '5s'")
    one(holder, "ff_project_flow_summary", flow_id=fid)
    assert one(other, "ff_trim_retention", retention_ms=0)["processed"] == 0
    assert one(other, "ff_project_flows")["processed"] == 0
    holder.commit()
    assert one(db, "ff_trim_retention", retention_ms=0)["processed"] == 1
    with refused("flow_not_found"):
        one(db, "ff_project_flow_summary", flow_id=fid)
    assert violations(db) == []


def test_projecting_many_at_once_ends_without_a_deadlock(db, connect, clock):
    for _ in range(30):
        node(db, flow(db))
    conns = [connect() for _ in range(4)]
    until = time.monotonic() + 1.5

    def work(conn):
        while time.monotonic() < until:
            assert one(conn, "ff_project_flows")["errors"] == 0

    threads = [threading.Thread(target=work, args=(conn,)) for conn in conns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clock.freeze()
    clock.advance(1)
    assert one(db, "ff_project_flows", limit=30)["more"] is False
    # All have been seen just now: a driver that calls again on more comes to an end. Until some have not.
    assert one(db, "ff_project_flows", limit=10)["more"] is False
    for _ in range(20):
        node(db, flow(db))
    assert one(db, "ff_project_flows", limit=10)["more"] is True
    deadlocks = "select deadlocks from pg_stat_database where datname = current_database()"
    assert table(db, deadlocks)[0]["deadlocks"] == 0


def test_a_dispatch_that_stopped_at_its_bounds_says_that_there_is_more(db):
    made = rows(
        db,
        "ff_submit_flow",
        nodes=Jsonb([{"key": str(n), "lane_id": "default"} for n in range(200)]),
        edges=Jsonb([{"from": str(n), "to": str(n + 1)} for n in range(199)]),
    )
    finish(db, next(r["execution_id"] for r in made if r["node_key"] == "0"), "failed")
    calls = 0
    while one(db, "ff_dispatch_completions")["more"]:
        calls += 1
        assert calls < 50
    assert undispatched(db) == []
    assert violations(db) == []


def test_an_id_that_is_taken_concurrently_is_a_conflict(db, connect):
    fid = "00000000-0000-7000-8000-000000000007"
    eid = "{fp:7}:11111111-0000-7000-8000-000000000007"
    holder, other = connect(autocommit=False), connect()
    one(holder, "ff_create_execution", lane_id="default", execution_id=eid)
    caught = []

    def submit():
        try:
            rows(
                other,
                "ff_submit_flow",
                flow_id=fid,
                nodes=Jsonb([{"key": "a", "lane_id": "default", "execution_id": eid}]),
            )
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=submit)
    thread.start()
    wait_for_lock(db, other)
    holder.commit()
    thread.join()
    assert caught[0].sqlstate == "WF301"
