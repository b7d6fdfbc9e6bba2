"""Flows under real concurrency: no end waits for a flow, nothing is lost, nothing happens twice."""

import random
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.flows.graph import (
    begin,
    chain,
    describe,
    fan_in,
    finish,
    flow,
    flow_state,
    group,
    link,
    node,
    nodes,
    stage,
    state,
    states,
    submit,
    undispatched,
)
from tests.sql import claim, create, one, refused, rows, table, take, violations


def together(count, work):
    """Runs work(n) in `count` threads that start at the same moment; the results in order."""
    barrier = threading.Barrier(count)

    def run(n):
        barrier.wait()
        return work(n)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def attempt(call, *args, **named):
    """What a call answers, or the kind of error."""
    try:
        return call(*args, **named)
    except psycopg.Error as error:
        return error.sqlstate


def held(connect, query, *args):
    """A connection with an open transaction that holds what the query locks."""
    conn = connect(autocommit=False)
    conn.execute(query, args)
    return conn


FLOW = "select from ff_flow_core where flow_id = %s for update"
EXECUTION = "select from ff_execution where execution_id = %s for update"


def uuid_of(eid):
    return eid.rsplit(":", maxsplit=1)[-1]


def test_upstreams_that_complete_at_once_release_their_child_once(db, connect):
    conns = [connect() for _ in range(6)]
    for _ in range(5):
        fid, ups, child = fan_in(db, 6)
        handles = [begin(db, eid)["handle"] for eid in ups]
        together(6, lambda n, handles=handles: one(conns[n], "ff_complete", handle=handles[n]))
        got = [row for row in together(3, lambda n: claim(conns[n])) if row]
        got = got or [take(db)]
        assert [row["execution_id"] for row in got] == [child]
        one(db, "ff_complete", handle=got[0]["handle"])
        assert undispatched(db) == []
        assert flow_state(db, fid) == "completed"
    assert violations(db) == []


def test_an_end_never_waits_for_a_busy_flow_and_the_next_claim_passes_it_on(db, connect):
    fid, (a, b) = chain(db, 2)
    handle = begin(db, a)["handle"]
    busy = held(connect, FLOW, fid)
    db.execute("set statement_timeout = '20s'")  # if it waits it waits for ever
    one(db, "ff_complete", handle=handle)
    assert (state(db, a), state(db, b)) == ("completed", "waiting_children")
    assert claim(db) is None
    assert violations(db) == []
    busy.rollback()
    assert take(db)["execution_id"] == b
    assert undispatched(db) == []
    assert violations(db) == []


def test_a_sweep_and_a_claim_pass_a_busy_flow_over(db, connect):
    fid, (a, b) = chain(db, 2)
    busy = held(connect, FLOW, fid)
    finish(db, a)
    assert one(db, "ff_dispatch_completions") == {"processed": 0, "errors": 0, "more": False}
    busy.rollback()
    assert one(db, "ff_dispatch_completions")["processed"] == 1
    assert state(db, b) == "waiting"


def test_a_busy_child_is_passed_over_and_released_later(db, connect):
    fid = flow(db)
    a, b, c = nodes(db, fid, 3)
    for child in (b, c):
        link(db, fid, a, child)
    busy = held(connect, EXECUTION, uuid_of(b))
    finish(db, a)
    assert states(db, [b, c]) == ["waiting_children", "waiting"]
    (row,) = undispatched(db)
    assert row["counted"]
    assert describe(db, fid)["live_members"] == 2
    done = one(db, "ff_dispatch_completion", event_id=row["event_id"])
    assert (done["outcome"], done["edges_resolved"]) == ("partial", 0)
    assert violations(db) == []
    busy.rollback()
    assert one(db, "ff_dispatch_completion", event_id=row["event_id"])["children_released"] == 1
    assert describe(db, fid)["live_members"] == 2
    assert violations(db) == []


def lock(connect, eid):
    """A connection with an open transaction that has changed an execution."""
    conn = connect(autocommit=False)
    one(conn, "ff_change_priority", execution_id=eid, priority=1)
    return conn


def attempts(db):
    return [row["dispatch_attempts"] for row in undispatched(db)]


def test_ends_that_were_put_off_are_not_read_again_before_their_time(db, connect, clock):
    clock.freeze()
    fid, ups, child = fan_in(db, 5)
    busy = lock(connect, child)
    for upstream in ups:
        finish(db, upstream)
    # Each is tried again once, by the end that follows it, and then put off.
    assert attempts(db) == [2, 2, 2, 2, 1]
    assert violations(db) == []
    busy.rollback()
    clock.advance(100)
    assert take(db)["execution_id"] == child
    assert undispatched(db) == []
    assert group(db, fid, child)["n_success"] == 5
    assert violations(db) == []


def test_ends_that_were_put_off_are_retried_after_the_clock_stepped_back(db, connect, clock):
    clock.freeze()
    fid, ups, child = fan_in(db, 4)
    busy = lock(connect, child)
    for upstream in ups[:3]:
        finish(db, upstream)
    busy.rollback()
    clock.advance(-3_600_000)
    finish(db, ups[3])
    assert undispatched(db) == []
    assert state(db, child) == "waiting"
    assert group(db, fid, child)["n_success"] == 4


def test_an_end_retries_a_few_of_those_that_were_put_off_however_many_are_due(db, connect, clock):
    clock.freeze()
    fid, ups, child = fan_in(db, 40)
    other = node(db, fid)
    link(db, fid, ups[-1], other)
    busy = lock(connect, child)
    for upstream in ups[:-1]:
        finish(db, upstream)
    clock.advance(60_000)
    before = attempts(db)
    finish(db, ups[-1])
    after = attempts(db)
    assert sum(a != b for a, b in zip(before, after, strict=False)) == 16
    assert state(db, other) == "waiting"  # its own end comes first
    # Once the child is free, one call does the rest.
    busy.rollback()
    clock.advance(60_000)
    assert one(db, "ff_dispatch_completions") == {"processed": 40, "errors": 0, "more": False}
    assert state(db, child) == "waiting"
    assert violations(db) == []


def test_a_busy_sibling_is_cancelled_later(db, connect):
    fid, (a, b), child = fan_in(db, 2, "any_of")
    busy = held(connect, EXECUTION, uuid_of(b))
    finish(db, a)
    assert states(db, [b, child]) == ["waiting", "waiting"]
    (row,) = table(db, "select * from ff_cancel_dispatch_outbox")
    assert row["reason"] == "sibling_quorum_satisfied"
    assert one(db, "ff_drain_sibling_cancels")["processed"] == 0
    assert violations(db) == []
    busy.rollback()
    assert one(db, "ff_drain_sibling_cancels")["processed"] == 1
    assert state(db, b) == "cancelled"
    assert violations(db) == []
    assert fid


def test_a_busy_member_is_left_to_the_backlog(db, connect):
    fid = flow(db)
    a, b = nodes(db, fid, 2)
    busy = held(connect, EXECUTION, uuid_of(a))
    found = one(db, "ff_cancel_flow", flow_id=fid)
    assert (found["outcome"], found["cancelled_count"], found["pending_count"]) == (
        "cancellation_scheduled",
        1,
        1,
    )
    assert one(db, "ff_drain_cancel_backlog")["processed"] == 0
    busy.rollback()
    assert claim(db) is None
    assert one(db, "ff_drain_cancel_backlog", flow_id=fid)["processed"] == 1
    assert states(db, [a, b]) == ["cancelled"] * 2
    assert violations(db) == []


def test_a_child_that_finishes_while_its_parent_goes_to_wait_is_not_missed(db, connect):
    conns = [connect() for _ in range(3)]
    for _ in range(15):
        fid = flow(db)
        parent = begin(db, node(db, fid))
        children = nodes(db, fid, 2)
        for child in children:
            link(db, fid, child, parent["execution_id"])
        handles = [begin(db, child)["handle"] for child in children]
        calls = [
            lambda h=parent["handle"]: one(conns[0], "ff_wait_children", handle=h)["outcome"],
            lambda h=handles[0]: one(conns[1], "ff_complete", handle=h)["outcome"],
            lambda h=handles[1]: one(conns[2], "ff_complete", handle=h)["outcome"],
        ]
        answers = together(3, lambda n, calls=calls: calls[n]())
        if answers[0] == "waiting":
            row = take(db)
            assert (row["execution_id"], row["handle_kind"]) == (parent["execution_id"], "resumed")
            one(db, "ff_complete", handle=row["handle"])
        else:
            one(db, "ff_complete", handle=parent["handle"])
        assert undispatched(db) == []
        assert flow_state(db, fid) == "completed"
    assert violations(db) == []


def test_of_two_edges_that_would_close_a_circle_one_is_refused(db, connect):
    conns = [connect(), connect()]
    for _ in range(5):
        fid = flow(db)
        a, b = nodes(db, fid, 2)
        ends = [(a, b), (b, a)]
        got = together(
            2, lambda n, fid=fid, ends=ends: attempt(lambda: stage(conns[n], fid, *ends[n])["outcome"])
        )
        assert sorted(got) == ["WF313", "staged"]
    assert violations(db) == []


def test_an_execution_wanted_by_two_flows_joins_one(db, connect):
    conns = [connect(), connect()]
    flows = [one(db, "ff_create_flow")["flow_id"]]
    flows.append(flow(db, flow_id=uuid.UUID(int=flows[0].int ^ 256)))
    for n in range(5):
        uid = uuid.UUID(int=flows[0].int ^ (512 + 1024 * n))
        eid = create(db, execution_id=f"{{fp:{flows[0].bytes[15]}}}:{uid}")
        got = together(
            2,
            lambda n, eid=eid: attempt(
                lambda: one(conns[n], "ff_add_execution_to_flow", flow_id=flows[n], execution_id=eid)[
                    "outcome"
                ]
            ),
        )
        assert sorted(got) == ["WF311", "added"]
    assert violations(db) == []


def test_an_execution_that_ends_while_it_is_added_is_in_or_out(db, connect):
    conns = [connect(), connect()]
    fid = flow(db)
    seen = Counter()
    for n in range(10):
        uid = uuid.UUID(int=fid.int ^ (512 + 1024 * n))
        eid = create(db, execution_id=f"{{fp:{fid.bytes[15]}}}:{uid}")
        handle = begin(db, eid)["handle"]
        calls = [
            lambda eid=eid: one(conns[0], "ff_add_execution_to_flow", flow_id=fid, execution_id=eid)[
                "outcome"
            ],
            lambda handle=handle: one(conns[1], "ff_complete", handle=handle)["outcome"],
        ]
        got = together(2, lambda n, calls=calls: attempt(calls[n]))
        assert got[1] == "completed"
        seen[got[0]] += 1
    assert set(seen) <= {"added", "WF405"}
    one(db, "ff_dispatch_completions")
    assert describe(db, fid)["node_count"] == seen["added"]
    assert describe(db, fid)["live_members"] == 0
    assert violations(db) == []


def test_the_last_two_acknowledgements_leave_no_header(db, connect):
    conns = [connect(), connect()]
    for _ in range(5):
        fid = flow(db)
        members = nodes(db, fid, 2)
        one(db, "ff_cancel_flow_header", flow_id=fid)
        got = together(
            2,
            lambda n, fid=fid, members=members: one(
                conns[n], "ff_ack_cancel_member", flow_id=fid, execution_id=members[n], force=True
            ),
        )
        assert [r["outcome"] for r in got] == ["acked"] * 2
        assert sorted(r["remaining"] for r in got) == [0, 1]
        assert table(db, "select * from ff_cancel_backlog") == []
    assert violations(db) == []


def test_of_concurrent_cancels_one_does_it(db, connect):
    conns = [connect() for _ in range(4)]
    fid = flow(db)
    members = nodes(db, fid, 5)
    got = together(4, lambda n: one(conns[n], "ff_cancel_flow", flow_id=fid)["outcome"])
    assert Counter(got) == {"cancelled": 1, "already_terminal": 3}
    query = "select count(*) as n from ff_event where family = 'completion'"
    assert table(db, query)[0]["n"] == len(members)
    assert violations(db) == []


@pytest.mark.own_session("asks the server about its own process")
def test_a_connection_that_dies_in_the_middle_of_an_end_loses_nothing(db, connect):
    fid, (a, b) = chain(db, 2)
    handle = begin(db, a)["handle"]
    dying = connect(autocommit=False)
    one(dying, "ff_complete", handle=handle)
    assert state(dying, b) == "waiting"
    db.execute("select pg_terminate_backend(%s, 5000)", [dying.info.backend_pid])
    assert (state(db, a), state(db, b)) == ("active", "waiting_children")
    assert undispatched(db) == []
    one(db, "ff_complete", handle=handle)
    assert take(db)["execution_id"] == b
    assert violations(db) == []
    assert fid


@pytest.mark.parametrize("outcome", ["success", "failed"])
def test_a_verb_that_cannot_see_a_decision_fails_to_serialize(db, connect, outcome):
    """At REPEATABLE READ the group looks undecided: parking on that would be for ever."""
    fid = flow(db)
    row = begin(db, node(db, fid))
    child = node(db, fid)
    link(db, fid, child, row["execution_id"])
    old = connect(autocommit=False)
    old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    old.execute("select count(*) from ff_exec_core")
    finish(db, child, outcome)
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute("select * from ff_delay(%s, p_delay_ms => 0)", [row["handle"]])
    old.rollback()
    assert one(db, "ff_delay", handle=row["handle"], delay_ms=0)["public_state"] == (
        "resumable" if outcome == "success" else "skipped"
    )
    assert violations(db) == []


def deadlocks(db):
    db.execute("select pg_stat_force_next_flush()")
    db.execute("select pg_stat_clear_snapshot()")
    return db.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone()[
        0
    ]


def operations(fid, members, rng):
    """Single calls that meet each other on one flow."""
    eid, other = rng.sample(members, 2)
    return rng.choice(
        [
            lambda c: [one(c, "ff_complete", handle=r["handle"]) for r in [claim(c, worker="x")] if r],
            lambda c: [
                one(c, "ff_fail", handle=r["handle"], classification="permanent") for r in [claim(c)] if r
            ],
            lambda c: rows(
                c,
                "ff_complete_many",
                handles=[
                    r["handle"]
                    for r in rows(
                        c, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w", limit=4
                    )
                ],
            ),
            lambda c: one(c, "ff_replay_execution", execution_id=eid),
            lambda c: node(c, fid),
            lambda c: link(c, fid, eid, other),
            lambda c: stage(c, fid, other, eid),
            lambda c: one(c, "ff_cancel_execution", execution_id=eid),
            lambda c: one(c, "ff_dispatch_completions"),
            lambda c: one(c, "ff_drain_sibling_cancels"),
            lambda c: one(c, "ff_set_execution_tag", execution_id=eid, key="a.b", value="c"),
            lambda c: [one(c, "ff_wait_children", handle=r["handle"]) for r in [claim(c)] if r],
            lambda c: one(c, "ff_start_flow", flow_id=fid),
        ]
    )


def test_single_calls_do_not_deadlock_whatever_they_meet(db, connect):
    before = deadlocks(db)
    conns = [connect() for _ in range(5)]
    fid = flow(db, hold=True)
    members = nodes(db, fid, 12)
    for eid in members[8:]:
        one(db, "ff_set_edge_group_policy", flow_id=fid, downstream_execution_id=eid, policy="any_of")
    unexpected = []

    def work(n):
        rng = random.Random(n)
        for _ in range(60):
            try:
                operations(fid, members, rng)(conns[n])
            except psycopg.Error as error:
                if not (error.sqlstate or "").startswith("WF"):
                    unexpected.append(error)

    together(5, work)
    assert unexpected == []
    assert deadlocks(db) == before
    for conn in conns:
        one(conn, "ff_dispatch_completions")
    assert violations(db) == []


def test_a_cancelled_flow_ends_under_fire(db, connect):
    conns = [connect() for _ in range(4)]
    for strength in ("cancel_all", "cancel_pending"):
        fid = flow(db)
        members = nodes(db, fid, 12)
        for up, down in zip(members[:6], members[6:], strict=True):
            link(db, fid, up, down)

        def work(n, fid=fid, strength=strength):
            if n == 0:
                return [one(conns[0], "ff_cancel_flow", flow_id=fid, policy=strength)["outcome"]]
            done = []
            for _ in range(6):
                if row := claim(conns[n], worker=f"w{n}"):
                    done.append(attempt(one, conns[n], "ff_complete", handle=row["handle"]))
            return done

        together(4, work)
        for _ in range(3):
            one(db, "ff_dispatch_completions")
            one(db, "ff_drain_cancel_backlog")
        assert set(states(db, members)) <= {"completed", "cancelled"}
        assert describe(db, fid)["cancel_pending"] == 0
        assert violations(db) == []


def test_a_thousand_members_are_cancelled_in_bounded_calls_without_a_daemon(db, connect):
    made = submit(db, [{"key": str(i), "lane_id": "default"} for i in range(1000)])
    fid = made[0]["flow_id"]
    found = one(db, "ff_cancel_flow", flow_id=fid, max_members=400)
    assert (found["outcome"], found["cancelled_count"], found["pending_count"]) == (
        "cancellation_scheduled",
        400,
        600,
    )
    calls = 0
    while describe(db, fid)["cancel_pending"]:
        calls += 1
        assert one(db, "ff_drain_cancel_backlog", flow_id=fid)["processed"] == 200
    assert calls == 3
    assert describe(db, fid)["members_cancelled"] == 1000
    assert violations(db) == []
    assert connect


def test_held_and_cancelled_members_in_front_do_not_hide_what_stands_behind(db, connect):
    fid = flow(db, hold=True)
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 3000, flow_id=fid)
    made = submit(db, [{"key": str(i), "lane_id": "default"} for i in range(500)])
    one(db, "ff_cancel_flow_header", flow_id=made[0]["flow_id"])
    free = create(db)
    plan = db.execute(
        "explain (analyze, buffers off, timing off, summary off) select c.execution_id from ff_execution c"
        " where c.ready_in = (select min(queue_id) from ff_queue where lane_id = 'default') order by c.rank limit 1"
    ).fetchall()
    assert "ff_execution_ready" in str(plan)
    row = take(db)
    assert row["execution_id"] == free
    locked = connect(autocommit=False)
    one(db, "ff_complete", handle=row["handle"])
    second = create(db)
    assert take(locked)["execution_id"] == second
    # None of those that were passed over is locked.
    query = "select count(*) as n from (select from ff_execution where flow_id is not null for update skip locked) x"
    assert table(db, query)[0]["n"] == 3500
    locked.rollback()


def test_no_claim_is_refused_what_it_may_have_while_a_flow_is_being_cancelled(db, connect):
    """A claim that saw the flow open, and locked its member after the cancel, gives it back."""
    fid = flow(db)
    eid = node(db, fid)
    conns = [connect() for _ in range(2)]
    got = together(
        2,
        lambda n: one(conns[0], "ff_cancel_flow", flow_id=fid)["outcome"] if n == 0 else claim(conns[1]),
    )
    one(db, "ff_drain_cancel_backlog")
    assert state(db, eid) == "cancelled"
    assert got[0] in ("cancelled", "cancellation_scheduled")
    with refused("flow_already_terminal"):
        node(db, fid)
    assert violations(db) == []


def test_an_end_behind_many_that_wait_for_a_locked_child_releases_its_own_child(db, connect, clock):
    clock.freeze()
    fid, ups, child = fan_in(db, 30)
    first, second = nodes(db, fid, 2)
    link(db, fid, first, second)
    busy_flow = held(connect, FLOW, fid)
    for upstream in [*ups, first]:
        finish(db, upstream)
        clock.advance(1)
    busy_flow.rollback()
    busy_child = lock(connect, child)
    event = undispatched(db)[0]["event_id"]
    done = one(db, "ff_dispatch_completion", event_id=event, max_edges=5)
    assert (done["outcome"], done["children_released"]) == ("partial", 1)
    assert states(db, [child, second]) == ["waiting_children", "waiting"]
    assert violations(db) == []
    busy_child.rollback()
    clock.advance(60_000)
    assert one(db, "ff_dispatch_completions")["processed"] == 30
    assert state(db, child) == "waiting"
    assert violations(db) == []


@pytest.mark.parametrize("what", ["flow", "child"])
def test_an_end_that_met_a_lock_is_applied_by_a_claim_after_the_clock_stepped_back(db, connect, clock, what):
    clock.freeze()
    fid, (a, b) = chain(db, 2)
    busy = held(connect, FLOW, fid) if what == "flow" else lock(connect, b)
    finish(db, a)
    busy.rollback()
    clock.advance(-3_600_000)
    assert take(db)["execution_id"] == b
    assert undispatched(db) == []
    assert fid
