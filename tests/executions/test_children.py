"""Children: executions created with a parent, which end and are replayed with it."""

import pytest

from tests.maintenance.support import EXECUTION, Due, errors, poison, repair, uuid_of
from tests.sql import claim, create, events, one, refused, rows, table, take, violations

NO_ONE = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"


def child(db, parent, lane="kids", **args):
    return create(db, lane, parent_execution_id=parent, **args)


def state(db, eid):
    return one(db, "ff_read_execution_state", execution_id=eid)["public_state"]


def describe(db, eid):
    return one(db, "ff_describe_execution", execution_id=eid)


def maintain(db, limit=200):
    """The step that works on children, until nothing is left to it."""
    ran = one(db, "ff_drain_sibling_cancels", limit=limit)
    while ran["more"]:
        ran = one(db, "ff_drain_sibling_cancels", limit=limit)
    return ran


def pending(db):
    return table(db, "select action from ff_child_work order by work_id")


def fail(db, eid):
    handle = one(db, "ff_issue_grant_and_claim", execution_id=eid)["handle"]
    one(db, "ff_fail", handle=handle, classification="permanent", reason="bad")


def replay(db, eid):
    return one(db, "ff_replay_execution", execution_id=eid)


# Creation and lists.


def test_a_child_shows_its_parent_and_the_parent_lists_it(db):
    parent = create(db)
    first = child(db, parent, execution_kind="resize")
    second = child(db, parent, lane="other", detached=True)
    assert describe(db, parent)["parent_execution_id"] is None
    assert describe(db, first)["parent_execution_id"] == parent
    found = rows(db, "ff_list_children", execution_id=parent)
    by_id = {row["execution_id"]: row for row in found}
    assert set(by_id) == {first, second}
    assert (by_id[first]["execution_kind"], by_id[first]["lane_id"]) == ("resize", "kids")
    assert (by_id[first]["public_state"], by_id[first]["terminal_at_ms"]) == ("waiting", None)
    assert (by_id[first]["detached"], by_id[second]["detached"]) == (False, True)
    assert by_id[first]["created_at_ms"] == describe(db, first)["created_at_ms"]


def test_children_are_listed_in_pages_in_the_order_of_their_creation(db, clock):
    clock.freeze()
    parent = create(db)
    made = []
    for _ in range(5):
        made.append(child(db, parent))
        clock.advance(1)
    child(db, create(db))
    found, after = [], None
    while page := rows(db, "ff_list_children", execution_id=parent, after=after, limit=2):
        assert len(page) <= 2
        found += [row["execution_id"] for row in page]
        after = page[-1]["cursor"]
    assert found == made


def test_an_unknown_execution_has_no_children(db):
    assert rows(db, "ff_list_children", execution_id=NO_ONE) == []
    with refused("invalid_execution_id"):
        rows(db, "ff_list_children", execution_id="nonsense")
    with refused("invalid_cursor"):
        rows(db, "ff_list_children", execution_id=NO_ONE, after="nonsense")
    with refused("invalid_input"):
        rows(db, "ff_list_children", execution_id=NO_ONE, limit=-1)


def test_a_child_needs_a_parent_that_exists(db):
    with refused("execution_not_found") as refusal:
        child(db, NO_ONE)
    assert refusal.detail["execution_id"] == NO_ONE
    with refused("invalid_execution_id"):
        child(db, "nonsense")
    with refused("invalid_input"):
        child(db, create(db), detached=None)
    with refused("execution_not_found"):  # an execution is not its own parent
        child(db, NO_ONE, execution_id=NO_ONE)
    assert rows(db, "ff_list_executions", lane_id="kids") == []


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_a_parent_that_has_ended_takes_only_detached_children(db, outcome):
    parent = create(db)
    if outcome == "completed":
        one(db, "ff_complete", handle=take(db)["handle"])
    elif outcome == "failed":
        fail(db, parent)
    else:
        one(db, "ff_cancel_execution", execution_id=parent)
    with refused("execution_already_terminal") as refusal:
        child(db, parent)
    assert (refusal.detail["execution_id"], refusal.detail["public_state"]) == (parent, outcome)
    detached = child(db, parent, detached=True)
    maintain(db)
    assert state(db, detached) == "waiting"
    assert violations(db) == []


def test_a_repeated_creation_answers_duplicate_whatever_became_of_the_parent(db):
    parent = create(db)
    first = child(db, parent, idempotency_key="k")
    fail(db, parent)
    again = one(db, "ff_create_execution", lane_id="kids", idempotency_key="k", parent_execution_id=parent)
    assert (again["outcome"], again["execution_id"], again["public_state"]) == (
        "duplicate",
        first,
        "cancelled",
    )
    # The parent is not part of the request, as priority and tags are not.
    other = one(db, "ff_create_execution", lane_id="kids", idempotency_key="k")
    assert (other["outcome"], other["execution_id"]) == ("duplicate", first)
    assert [row["execution_id"] for row in rows(db, "ff_list_children", execution_id=parent)] == [first]


def test_a_child_may_be_in_another_namespace(db):
    parent = create(db, namespace="a")
    there = child(db, parent, namespace="b")
    fail(db, parent)
    assert state(db, there) == "cancelled"


# The end of a parent.


def by_failing(db, clock, eid):
    fail(db, eid)


def by_cancelling(db, clock, eid):
    one(db, "ff_cancel_execution", execution_id=eid, reason="no more")


def by_its_worker(db, clock, eid):
    one(db, "ff_cancel", handle=one(db, "ff_issue_grant_and_claim", execution_id=eid)["handle"])


def by_its_deadline(db, clock, eid):
    clock.advance(60_000)
    one(db, "ff_sweep_deadlines")


def by_maintenance(db, clock, eid):
    clock.advance(60_000)
    rows(db, "ff_tick", force=True)


def by_a_claim(db, clock, eid):
    """A claim expires what is overdue."""
    clock.advance(60_000)
    assert claim(db) is None


def by_an_operator(db, clock, eid):
    one(db, "ff_issue_grant_and_claim", execution_id=eid)
    one(
        db,
        "ff_fail_execution",
        execution_id=eid,
        source="operator_override",
        reason="no",
        classification="permanent",
    )


def by_its_budget(db, clock, eid):
    one(
        db,
        "ff_create_budget",
        budget_id="b",
        dimensions=["n"],
        hard_limits=[1],
        soft_limits=[0],
        on_hard_limit="cancel_all",
    )
    one(db, "ff_attach_budget", budget_id="b", execution_id=eid)
    one(db, "ff_report_usage_admin", budget_id="b", deltas={"n": 2})
    one(db, "ff_sweep_budget_breaches")


def by_its_flow(db, clock, eid):
    flow_id = one(db, "ff_create_flow", flow_id=uuid_of(eid))["flow_id"]
    one(db, "ff_add_execution_to_flow", flow_id=flow_id, execution_id=eid)
    one(db, "ff_cancel_flow", flow_id=flow_id)
    maintain(db)


def by_an_upstream(db, clock, eid):
    """It is skipped, since what it waits for failed."""
    flow_id = one(db, "ff_create_flow", flow_id=uuid_of(eid))["flow_id"]
    one(db, "ff_add_execution_to_flow", flow_id=flow_id, execution_id=eid)
    upstream = create(db, flow_id=flow_id)
    one(
        db,
        "ff_add_dependency",
        flow_id=flow_id,
        upstream_execution_id=upstream,
        downstream_execution_id=eid,
    )
    fail(db, upstream)
    assert state(db, eid) == "skipped"
    maintain(db)


@pytest.mark.parametrize(
    "end",
    [
        by_failing,
        by_cancelling,
        by_its_worker,
        by_its_deadline,
        by_maintenance,
        by_a_claim,
        by_an_operator,
        by_its_budget,
        by_its_flow,
        by_an_upstream,
    ],
)
def test_when_a_parent_ends_otherwise_its_children_are_cancelled(db, clock, end):
    clock.freeze()
    parent = create(db, policy={"timeout_policy": {"execution_deadline_ms": 50_000}})
    waiting, running, delayed, done, detached = (
        child(db, parent),
        child(db, parent, lane="running"),
        child(db, parent, delay_ms=86_400_000),
        child(db, parent, lane="done"),
        child(db, parent, detached=True),
    )
    one(db, "ff_complete", handle=take(db, "done")["handle"])
    handle = take(db, "running", lease_ttl_ms=86_400_000)["handle"]
    end(db, clock, parent)
    for eid in (waiting, running, delayed):
        found = describe(db, eid)
        assert found["public_state"] == "cancelled"
        assert (found["cancellation_reason"], found["cancelled_by"]) == ("parent_ended", "engine")
    assert (state(db, done), state(db, detached)) == ("completed", "waiting")
    assert events(db, running)[-2:] == ["lease/released:cancel", "completion/cancelled:parent_ended"]
    with refused("execution_not_active"):
        one(db, "ff_complete", handle=handle)
    assert violations(db) == []
    maintain(db)
    assert (state(db, done), state(db, detached)) == ("completed", "waiting")
    assert pending(db) == []


def test_children_of_a_parent_that_completes_or_is_retried_continue(db):
    for end in ("ff_complete", "ff_fail"):
        parent = create(db, policy={"retry_policy": {"max_retries": 1}})
        kid = child(db, parent)
        handle = one(db, "ff_issue_grant_and_claim", execution_id=parent)["handle"]
        one(db, end, handle=handle)
        maintain(db)
        assert state(db, kid) == "waiting"
    assert pending(db) == []
    assert violations(db) == []


def test_a_whole_family_is_cancelled_however_deep(db):
    generations = [[create(db)]]
    for _ in range(3):
        generations.append([child(db, parent) for parent in generations[-1] for _ in range(2)])
    deep = generations[-1][0]
    for _ in range(40):
        deep = child(db, deep)
    one(db, "ff_cancel_execution", execution_id=generations[0][0])
    maintain(db)
    assert {state(db, eid) for generation in generations for eid in generation} == {"cancelled"}
    assert state(db, deep) == "cancelled"
    assert pending(db) == []
    assert violations(db) == []


def test_many_children_are_cancelled_in_batches_by_maintenance(db):
    parent = create(db)
    table(
        db,
        """select count(*) from generate_series(1, 350) n
            cross join lateral ff_create_execution('kids', p_parent_execution_id => %s || left('', n)) c""",
        parent,
    )
    one(db, "ff_cancel_execution", execution_id=parent)
    assert violations(db) == []
    ran = one(db, "ff_drain_sibling_cancels", limit=100)
    assert (ran["processed"], ran["errors"], ran["more"]) == (100, 0, True)
    left = table(
        db, "select count(*) from ff_v_execution where lane_id = 'kids' and public_state = 'waiting'"
    )
    assert 250 <= left[0]["count"] < 350
    assert violations(db) == []
    maintain(db, limit=100)
    page = rows(db, "ff_list_children", execution_id=parent, limit=1000)
    assert len(page) == 350
    assert {row["public_state"] for row in page} == {"cancelled"}
    assert pending(db) == []


def test_a_child_that_is_busy_is_cancelled_by_maintenance_later(db, connect):
    parent = create(db)
    busy, free = child(db, parent), child(db, parent)
    other = connect(autocommit=False)
    other.execute(EXECUTION, [uuid_of(busy)])
    fail(db, parent)
    assert (state(db, busy), state(db, free)) == ("waiting", "cancelled")
    assert violations(db) == []
    maintain(db)
    assert state(db, busy) == "waiting"
    other.rollback()
    maintain(db)
    assert state(db, busy) == "cancelled"
    assert pending(db) == []


def test_a_child_that_cannot_be_cancelled_keeps_no_other_from_it(db, clock):
    clock.freeze()
    parent = create(db)
    made = [child(db, parent) for _ in range(3)]
    bad = Due(0, "ff_execution", "execution_id", uuid_of(made[1]), "", lambda: False)
    poison(db, bad)
    fail(db, parent)
    assert [state(db, eid) for eid in made] == ["cancelled", "waiting", "cancelled"]
    assert violations(db) == []
    clock.advance(1000)
    assert one(db, "ff_drain_sibling_cancels")["errors"] > 0
    assert one(db, "ff_drain_sibling_cancels")["errors"] == 0  # put off
    repair(db, bad)
    clock.advance(60_000)
    assert one(db, "ff_drain_sibling_cancels")["errors"] == 0
    assert state(db, made[1]) == "cancelled"
    assert errors(db, "drain_sibling_cancels") == {}
    assert violations(db) == []


@pytest.mark.parametrize("ended", [False, True])
def test_a_busy_parent_with_much_work_keeps_no_other_from_it(db, connect, ended):
    busy = create(db)
    table(
        db,
        """select count(*) from generate_series(1, 250) n
            cross join lateral ff_create_execution('kids', p_parent_execution_id => %s || left('', n)) c""",
        busy,
    )
    if ended:
        fail(db, busy)
        one(db, "ff_drain_sibling_cancels", limit=1)
    holder = connect(autocommit=False)
    holder.execute(EXECUTION, [uuid_of(busy)])
    other = create(db)
    creator = connect(autocommit=False)
    kid = child(creator, other)
    one(db, "ff_cancel_execution", execution_id=other)
    creator.commit()
    maintain(db, limit=10)
    assert state(db, kid) == "cancelled"
    holder.rollback()
    maintain(db)
    assert pending(db) == []


# Replays.


def test_replaying_a_parent_replays_its_children_that_did_not_succeed(db):
    parent = create(db)
    done, failed, waiting = child(db, parent, lane="done"), child(db, parent), child(db, parent)
    detached = child(db, parent, detached=True)
    one(db, "ff_complete", handle=take(db, "done")["handle"])
    fail(db, failed)
    fail(db, detached)
    grandchild = child(db, waiting)
    fail(db, parent)
    assert [state(db, eid) for eid in (waiting, grandchild)] == ["cancelled", "cancelled"]
    assert replay(db, parent)["public_state"] == "waiting"
    assert [state(db, eid) for eid in (failed, waiting, grandchild)] == ["waiting"] * 3
    assert (state(db, done), state(db, detached)) == ("completed", "failed")
    assert describe(db, waiting)["cancellation_reason"] is None
    assert "operator/replayed:parent_replayed" in events(db, waiting)
    assert violations(db) == []
    maintain(db)
    assert [state(db, eid) for eid in (failed, waiting, grandchild)] == ["waiting"] * 3
    fail(db, parent)
    assert [state(db, eid) for eid in (failed, waiting, grandchild)] == ["cancelled"] * 3


def test_a_child_without_replays_left_stays_as_it_is(db):
    parent = create(db)
    once = child(db, parent, policy={"max_replay_count": 0})
    other = child(db, parent)
    fail(db, parent)
    replay(db, parent)
    assert (state(db, once), state(db, other)) == ("cancelled", "waiting")
    assert violations(db) == []


def test_a_child_that_fails_after_the_replay_is_not_replayed_again(db):
    parent = create(db)
    kid = child(db, parent)
    fail(db, parent)
    replay(db, parent)
    fail(db, kid)
    maintain(db)
    assert state(db, kid) == "failed"


def test_a_parent_that_is_replayed_at_once_keeps_what_was_not_cancelled_yet(db, connect):
    parent = create(db)
    kid = child(db, parent)
    other = connect(autocommit=False)
    other.execute(EXECUTION, [uuid_of(kid)])
    fail(db, parent)
    other.rollback()
    replay(db, parent)
    maintain(db)
    assert state(db, kid) == "waiting"
    assert pending(db) == []


def test_many_children_are_replayed_in_batches_by_maintenance(db):
    parent = create(db)
    table(
        db,
        """select count(*) from generate_series(1, 150) n
            cross join lateral ff_create_execution('kids', p_parent_execution_id => %s || left('', n)) c""",
        parent,
    )
    fail(db, parent)
    maintain(db)
    replay(db, parent)
    assert violations(db) == []
    maintain(db)
    page = rows(db, "ff_list_children", execution_id=parent, limit=1000)
    assert {row["public_state"] for row in page} == {"waiting"}
    assert len(page) == 150


def test_a_child_that_is_replayed_alone_after_its_parent_ended_becomes_detached(db):
    parent = create(db)
    kid = child(db, parent)
    fail(db, parent)
    replay(db, kid)
    maintain(db)
    assert state(db, kid) == "waiting"
    assert [row["detached"] for row in rows(db, "ff_list_children", execution_id=parent)] == [True]
    assert violations(db) == []


def test_a_child_that_is_replayed_alone_under_a_running_parent_stays_attached(db):
    parent = create(db)
    kid = child(db, parent)
    fail(db, kid)
    replay(db, kid)
    fail(db, parent)
    assert state(db, kid) == "cancelled"
    assert violations(db) == []


# Retention.


def trim(db, **args):
    one(db, "ff_trim_retention", retention_ms=0, **args)


def test_a_parent_may_be_deleted_before_its_children(db):
    parent = create(db)
    kid = child(db, parent)
    one(db, "ff_complete", handle=take(db)["handle"])
    trim(db)
    assert rows(db, "ff_describe_execution", execution_id=parent) == []
    assert describe(db, kid)["parent_execution_id"] == parent
    assert [row["execution_id"] for row in rows(db, "ff_list_children", execution_id=parent)] == [kid]
    maintain(db)
    assert state(db, kid) == "waiting"
    assert violations(db) == []
    fail(db, kid)
    replay(db, kid)
    assert state(db, kid) == "waiting"
    assert violations(db) == []


def test_children_of_a_failed_parent_that_was_deleted_are_still_cancelled(db, connect):
    parent = create(db)
    kid = child(db, parent)
    other = connect(autocommit=False)
    other.execute(EXECUTION, [uuid_of(kid)])
    fail(db, parent)
    other.rollback()
    trim(db)
    assert rows(db, "ff_describe_execution", execution_id=parent) == []
    maintain(db)
    assert state(db, kid) == "cancelled"
    assert violations(db) == []


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_a_parent_is_not_deleted_while_a_child_of_it_is_being_created(db, connect, outcome):
    parent = create(db)
    handle = take(db)["handle"]
    creator = connect(autocommit=False)
    kid = child(creator, parent)
    if outcome == "completed":
        one(db, "ff_complete", handle=handle)
    else:
        one(db, "ff_fail", handle=handle, classification="permanent")
    trim(db)
    assert state(db, parent) == outcome
    creator.commit()
    trim(db)
    assert rows(db, "ff_describe_execution", execution_id=parent) == []
    maintain(db)
    assert state(db, kid) == ("waiting" if outcome == "completed" else "cancelled")
    assert violations(db) == []


def test_a_parent_is_not_deleted_while_a_child_of_it_is_being_replayed(db, connect):
    parent = create(db)
    kid = child(db, parent)
    one(db, "ff_complete", handle=take(db)["handle"])
    fail(db, kid)
    maintain(db)
    operator = connect(autocommit=False)
    replay(operator, kid)
    trim(db)
    assert state(db, parent) == "completed"
    operator.commit()
    trim(db)
    assert rows(db, "ff_describe_execution", execution_id=parent) == []
    maintain(db)
    assert state(db, kid) == "waiting"


def test_retention_waits_for_no_work_on_children(db, connect):
    parent = create(db)
    child(db, parent)
    maintainer = connect(autocommit=False)
    one(maintainer, "ff_drain_sibling_cancels")  # stays open
    one(db, "ff_complete", handle=take(db)["handle"])
    db.execute("set lock_timeout = '2s'")
    trim(db)
    assert state(db, parent) == "completed"
    maintainer.commit()
    trim(db)
    assert rows(db, "ff_describe_execution", execution_id=parent) == []


def test_the_id_of_a_deleted_parent_is_not_free_while_children_of_it_are_kept(db, clock):
    clock.freeze()
    one(db, "ff_set_event_family", family="lease", muted=["*"])
    one(db, "ff_set_event_family", family="completion", muted=["*"])
    parent = create(db)
    kid = child(db, parent)
    one(db, "ff_complete", handle=take(db)["handle"])
    maintain(db)
    trim(db)
    with refused("execution_id_conflict"):
        create(db, execution_id=parent)
    one(db, "ff_complete", handle=take(db, "kids")["handle"])
    trim(db)
    assert rows(db, "ff_describe_execution", execution_id=kid) == []
    assert create(db, execution_id=parent) == parent


def test_a_deleted_child_is_listed_no_more(db):
    parent = create(db)
    child(db, parent)
    one(db, "ff_complete", handle=take(db, "kids")["handle"])
    trim(db)
    assert rows(db, "ff_list_children", execution_id=parent) == []
    assert violations(db) == []
    fail(db, parent)
    assert violations(db) == []
