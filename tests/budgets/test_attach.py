"""ff_attach_budget and ff_detach_budget."""

import uuid

import pytest

from tests.budgets.support import attach, budget, detach, report
from tests.sql import claim, create, execution, one, refused, table, take, violations

UNKNOWN_ID = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
NO_FLOW = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")


def new_flow(db, **options):
    return one(db, "ff_create_flow", **options)["flow_id"]


def on_flow(db, flow):
    return one(db, "ff_describe_flow", flow_id=flow)["budget_ids"]


def park(db, execution_id):
    """Parks an execution as a claim does."""
    db.execute(
        """update ff_execution set state = 'budget', ready_in = null, due_at_ms = ff__max_time_ms(),
                                   blocked_budget_id = budget_ids[1]
            where execution_id = %s""",
        [execution_id[-36:]],
    )


def test_an_execution_takes_several_budgets_and_loses_them(db, clock):
    now = clock.freeze()
    for name in "abc":
        budget(db, name)
    eid = create(db)
    clock.advance(5)
    assert attach(db, "a", execution_id=eid) == "attached"
    assert attach(db, "b", execution_id=eid) == "attached"
    assert attach(db, "a", execution_id=eid) == "already_attached"
    assert one(db, "ff_describe_execution", execution_id=eid)["budget_ids"] == ["a", "b"]
    assert execution(db, eid)["last_mutation_at_ms"] == now + 5
    assert violations(db) == []
    assert detach(db, "c", execution_id=eid) == "not_attached"
    assert detach(db, "a", execution_id=eid) == "detached"
    assert detach(db, "a", execution_id=eid) == "not_attached"
    assert execution(db, eid)["budget_ids"] == ["b"]
    assert detach(db, "b", execution_id=eid) == "detached"
    assert execution(db, eid)["budget_ids"] is None
    assert violations(db) == []


@pytest.mark.parametrize("function", [attach, detach])
def test_exactly_one_target_is_named(db, function):
    budget(db)
    with refused("invalid_input"):
        function(db)
    with refused("invalid_input"):
        function(db, execution_id=create(db), flow_id=new_flow(db))
    with refused("invalid_input"):
        function(db, None, execution_id=create(db))


def test_the_order_of_refusals_when_attaching(db):
    budget(db)
    eid, flow = create(db), new_flow(db)
    with refused("invalid_execution_id"):
        attach(db, "no", execution_id="x")
    with refused("budget_not_found") as refusal:
        attach(db, "no", execution_id=UNKNOWN_ID)
    assert refusal.detail["budget_id"] == "no"
    with refused("budget_not_found"):
        attach(db, "no", flow_id=NO_FLOW)
    with refused("execution_not_found"):
        attach(db, execution_id=UNKNOWN_ID)
    number = int(eid[4 : eid.index("}")])
    with refused("execution_not_found"):
        attach(db, execution_id=eid.replace(f"{{fp:{number}}}", f"{{fp:{(number + 1) % 256}}}"))
    with refused("flow_not_found"):
        attach(db, flow_id=NO_FLOW)
    one(db, "ff_cancel_execution", execution_id=eid)
    with refused("execution_already_terminal"):
        attach(db, execution_id=eid)
    for policy in ("cancel_flow_only", "cancel_all"):
        one(db, "ff_cancel_flow", flow_id=flow, policy=policy)
        with refused("flow_already_terminal"):
            attach(db, flow_id=flow)


def test_what_is_attached_stays_so_after_the_end(db):
    budget(db)
    eid, flow = create(db), new_flow(db)
    attach(db, execution_id=eid)
    attach(db, flow_id=flow)
    one(db, "ff_cancel_execution", execution_id=eid)
    one(db, "ff_cancel_flow", flow_id=flow)
    assert attach(db, execution_id=eid) == "already_attached"
    assert attach(db, flow_id=flow) == "already_attached"
    assert detach(db, execution_id=eid) == "detached"
    assert detach(db, flow_id=flow) == "detached"


def test_detaching_refuses_targets_that_are_not_there(db):
    with refused("invalid_execution_id"):
        detach(db, execution_id="x")
    with refused("execution_not_found"):
        detach(db, execution_id=UNKNOWN_ID)
    with refused("flow_not_found"):
        detach(db, flow_id=NO_FLOW)


def test_sixteen_budgets_are_enough(db):
    eid, flow = create(db), new_flow(db)
    for n in range(17):
        budget(db, f"b{n}")
    for n in range(16):
        attach(db, f"b{n}", execution_id=eid)
        attach(db, f"b{n}", flow_id=flow)
    for target in ({"execution_id": eid}, {"flow_id": flow}):
        with refused("invalid_input"):
            attach(db, "b16", **target)
        assert attach(db, "b15", **target) == "already_attached"
    assert violations(db) == []
    detach(db, "b3", execution_id=eid)
    assert attach(db, "b16", execution_id=eid) == "attached"


def test_a_flow_with_a_full_member_takes_no_more(db):
    flow = new_flow(db)
    full, other = create(db, flow_id=flow), create(db, flow_id=flow)
    for n in range(16):
        budget(db, f"b{n}")
        attach(db, f"b{n}", execution_id=full)
    budget(db)
    with refused("invalid_input") as refusal:
        attach(db, flow_id=flow)
    assert refusal.detail["execution_id"] == full
    assert (execution(db, other)["budget_ids"], on_flow(db, flow)) == (None, None)


def test_a_flows_budgets_reach_its_members_present_and_future(db):
    for name in "abc":
        budget(db, name)
    flow = new_flow(db)
    waiting, ended, own, running = (create(db, flow_id=flow, priority=9 - n) for n in range(4))
    one(db, "ff_cancel_execution", execution_id=ended)
    attach(db, "c", execution_id=own)
    one(db, "ff_change_priority", execution_id=running, priority=9000)
    assert take(db)["execution_id"] == running
    assert attach(db, "a", flow_id=flow) == "attached"
    assert attach(db, "b", flow_id=flow) == "attached"
    assert attach(db, "c", flow_id=flow) == "attached"
    assert on_flow(db, flow) == ["a", "b", "c"]
    assert {e: execution(db, e)["budget_ids"] for e in (waiting, ended, own, running)} == {
        waiting: ["a", "b", "c"],
        ended: None,
        own: ["c", "a", "b"],
        running: ["a", "b", "c"],
    }
    number = flow.bytes[-1]
    same = uuid.UUID(bytes=uuid.uuid4().bytes[:15] + bytes([number]))
    joined = create(db, execution_id=f"{{fp:{number}}}:{same}")
    one(db, "ff_add_execution_to_flow", flow_id=flow, execution_id=joined)
    assert [execution(db, e)["budget_ids"] for e in (create(db, flow_id=flow), joined)] == [
        ["a", "b", "c"]
    ] * 2
    assert detach(db, "a", flow_id=flow) == "detached"
    assert detach(db, "a", flow_id=flow) == "not_attached"
    assert on_flow(db, flow) == ["b", "c"]
    assert execution(db, waiting)["budget_ids"] == ["a", "b", "c"]  # members keep theirs
    detach(db, "b", flow_id=flow)
    detach(db, "c", flow_id=flow)
    assert on_flow(db, flow) is None
    assert violations(db) == []


def test_work_that_runs_may_be_attached_and_detached(db):
    budget(db)
    create(db)
    row = take(db)
    assert attach(db, execution_id=row["execution_id"]) == "attached"
    assert detach(db, execution_id=row["execution_id"]) == "detached"
    assert one(db, "ff_complete", handle=row["handle"])["outcome"] == "completed"


def test_a_parked_execution_is_free_when_it_is_detached(db):
    budget(db)
    eid = create(db)
    attach(db, execution_id=eid)
    report(db, 100)
    park(db, eid)
    assert claim(db) is None
    assert detach(db, execution_id=eid) == "detached"
    assert take(db)["execution_id"] == eid
    assert violations(db) == []


def test_a_parked_member_that_is_detached_still_waits_for_its_children(db):
    budget(db)
    flow = new_flow(db)
    up, down = create(db, "up", flow_id=flow), create(db, flow_id=flow)
    attach(db, execution_id=down)
    ends = {"flow_id": flow, "upstream_execution_id": up, "downstream_execution_id": down}
    one(db, "ff_add_dependency", **ends)
    park(db, down)
    detach(db, execution_id=down)
    assert execution(db, down)["eligibility_state"] == "blocked_by_dependencies"


def test_the_rules_find_what_must_not_be(db):
    budget(db)
    eid = create(db)
    attach(db, execution_id=eid)
    for broken, rule in (
        ("update ff_budget_usage set current_value = -1", "budget_usage"),
        ("update ff_budget_usage set current_value = 101", "budget_limit"),
        (
            "insert into ff_budget_usage_by_exec values ('b', gen_random_uuid(), 'tokens', 0, 1)",
            "budget_ledger",
        ),
        (
            "insert into ff_budget_usage_by_exec values ('b', gen_random_uuid(), 'tokens', 1, 1)",
            "budget_ledger_row",
        ),
        ("insert into ff_budget_breach values ('b', 1, 'cancel_all')", "budget_breach"),
        ("update ff_budget set breached = true", "budget_breached"),
        ("update ff_execution set budget_ids = '{no}'", "budget_attached"),
        ("update ff_execution set budget_ids = '{}'", "budget_attached"),
        ("update ff_execution set budget_ids = '{b,b}'", "budget_attached"),
        (
            "insert into ff_budget_usage_dedup values ('no', 'k', null, null, 1, '', 'ok', null)",
            "budget_dedup",
        ),
        (
            "update ff_execution set budget_ids = null, state = 'budget'",
            "budget_parked",
        ),
    ):
        db.execute("savepoint sound")
        db.execute(broken)
        assert rule in {row["invariant"] for row in violations(db)}, broken
        db.execute("rollback to sound")
    assert violations(db) == []
    assert table(db, "select from ff_budget_breach") == []
