"""ff_v_stuck names what does not move, and nothing else; the calls that it advises help."""

import re

import pytest

from tests.flows.graph import flow, nodes
from tests.sql import create, one, table, take, violations
from tests.suspensions.support import OPERATOR_ONLY, suspended

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
RETRY = {"retry_policy": {"max_retries": 3, "backoff": {"type": "fixed", "delay_ms": 2 * HOUR}}}


def stuck(db):
    return {row["kind"]: row for row in table(db, "select * from ff_v_stuck")}


def worker(db, lane="default", capabilities=(), ttl=DAY):
    one(
        db,
        "ff_register_worker",
        worker_id="w",
        worker_instance_id="w-1",
        lanes=[lane],
        capabilities=list(capabilities),
        liveness_ttl_ms=ttl,
    )


def test_nothing_is_stuck_in_an_engine_at_work(db, clock):
    clock.freeze()
    worker(db)
    assert stuck(db) == {}
    create(db)
    create(db, delay_ms=1000)
    take(db)
    suspended(db, timeout_ms=1000)
    flow(db)
    assert stuck(db) == {}


def test_work_on_a_stopped_lane_waits_for_the_lane(db, clock):
    clock.freeze()
    create(db)
    create(db, required_capabilities=["gpu"])
    one(db, "ff_set_lane_state", lane_id="default", state="paused", reason="night")
    clock.advance(DAY)
    (row,) = stuck(db).values()
    assert (row["kind"], row["lane_id"], row["waiting"]) == ("lane_stopped", "default", 2)
    assert row["waits_for"] == "lane default, which is paused: night"
    assert "ff_set_lane_state" in row["what_to_do"]
    assert row["for_how_long"].total_seconds() == DAY / 1000
    one(db, "ff_set_lane_state", lane_id="default", state="active")
    assert "lane_stopped" not in stuck(db)


def test_work_that_no_worker_can_do(db, clock):
    clock.freeze()
    first = create(db)
    for _ in range(3):
        create(db, required_capabilities=["gpu", "arm"])
    assert stuck(db) == {}
    clock.advance(MINUTE)
    found = table(db, "select * from ff_v_stuck order by waiting")
    assert [(row["kind"], row["waiting"]) for row in found] == [("no_worker", 1), ("no_worker", 3)]
    assert found[0]["execution_id"] == first
    assert found[1]["waits_for"] == "a worker with arm, gpu"
    worker(db, capabilities=["gpu"])
    (row,) = stuck(db).values()
    assert (row["kind"], row["waiting"]) == ("no_capable_worker", 3)
    worker(db, capabilities=["gpu", "arm"])
    assert stuck(db) == {}
    clock.advance(10 * MINUTE)
    assert set(stuck(db)) == {"backlog"}
    worker(db, lane="other", capabilities=["gpu", "arm"])
    assert set(stuck(db)) == {"no_worker"}


def test_work_that_needs_admission_stands_in_line_with_the_rest(db, clock):
    clock.freeze()
    one(db, "ff_create_quota_policy", quota_policy_id="q")
    create(db)
    first = create(db, priority=5, policy={"quota_policy_id": "q"})
    create(db)
    clock.advance(MINUTE)
    (row,) = table(db, "select * from ff_v_stuck")
    assert (row["kind"], row["waiting"], row["execution_id"]) == ("no_worker", 3, first)


def test_capabilities_too_long_for_the_index_are_named_all_the_same(db, clock):
    clock.freeze()
    tokens = [f"token-number-{n:03}" for n in range(40)]
    create(db, required_capabilities=tokens)
    clock.advance(MINUTE)
    worker(db, capabilities=tokens)
    assert stuck(db) == {}
    worker(db, capabilities=tokens[1:])
    assert stuck(db)["no_capable_worker"]["waits_for"].startswith("a worker with token-number-000, ")


def test_leases_and_delays_that_ended_and_are_not_claimed(db, clock):
    clock.freeze()
    worker(db)
    create(db, delay_ms=30_000)
    held = create(db)
    take(db, lease_ttl_ms=30_000)
    clock.advance(30_000 + MINUTE - 1)
    assert stuck(db) == {}
    clock.advance(1)
    found = stuck(db)
    assert set(found) == {"lease_lapsed", "delay_over"}
    assert found["lease_lapsed"]["execution_id"] == held
    assert found["lease_lapsed"]["waits_for"] == "a claim on this lane: w-1 let its lease run out"
    assert found["delay_over"]["for_how_long"].total_seconds() == 60
    take(db)
    take(db)
    assert stuck(db) == {}


def test_a_renewed_lease_is_not_taken_for_a_lapsed_one(db, clock):
    clock.freeze()
    create(db)
    row = take(db, lease_ttl_ms=30_000)
    clock.advance(20_000)
    one(db, "ff_renew", handle=row["handle"], lease_ttl_ms=DAY)
    clock.advance(HOUR)
    assert stuck(db) == {}


def test_a_retry_far_away(db, clock):
    clock.freeze()
    create(db, policy=RETRY)
    one(db, "ff_fail", handle=take(db)["handle"], reason="no route", category="net")
    (row,) = stuck(db).values()
    assert (row["kind"], row["waits_for"]) == (
        "retry_far_away",
        "its next attempt, in 02:00:00, after: no route",
    )
    clock.advance(HOUR)
    assert stuck(db) == {}


def test_a_deadline_that_passed(db, clock):
    clock.freeze()
    eid = create(db, deadline_at_ms=clock.now() + 1000)
    worker(db)
    clock.advance(1000 + MINUTE)
    (row,) = stuck(db).values()
    assert (row["kind"], row["execution_id"]) == ("deadline_passed", eid)
    one(db, "ff_expire_execution", execution_id=eid, phase="execution_deadline")
    assert stuck(db) == {}


def test_suspensions_that_nothing_ends(db, clock):
    clock.freeze()
    claim, _ = suspended(db, OPERATOR_ONLY, reason_code="manual_pause", reason_detail="ask Jo")
    clock.advance(DAY - 1)
    assert stuck(db) == {}
    clock.advance(1)
    (row,) = stuck(db).values()
    assert (row["kind"], row["execution_id"]) == ("suspended_for_ever", claim["execution_id"])
    assert row["waits_for"] == "manual_pause: ask Jo, without a timeout"


@pytest.mark.parametrize("behavior", ["fail", "escalate"])
def test_suspensions_whose_timeout_passed(db, clock, behavior):
    clock.freeze()
    claim, _ = suspended(db, timeout_ms=1000, timeout_behavior=behavior)
    clock.advance(1000 + MINUTE)
    assert stuck(db)["suspension_overdue"]["waits_for"] == "maintenance to end it: its timeout has passed"
    one(db, "ff_expire_suspension", execution_id=claim["execution_id"])
    if behavior == "escalate":
        assert stuck(db)["escalated"]["waits_for"] == "waiting_for_operator_review, without a timeout"
    assert "suspension_overdue" not in stuck(db)


@pytest.mark.parametrize(
    ("kind", "eligibility", "reason"),
    [
        ("parked_by_quota", "blocked_by_quota", "waiting_for_quota"),
        ("parked_by_budget", "blocked_by_budget", "waiting_for_budget"),
        ("held_by_operator", "blocked_by_operator", "paused_by_operator"),
    ],
)
def test_what_was_parked_is_one_row_per_cause_and_lane(db, clock, kind, eligibility, reason):
    clock.freeze()
    one(db, "ff_create_quota_policy", quota_policy_id="q", max_concurrent=1)
    one(db, "ff_create_budget", budget_id="b", dimensions=["d"], hard_limits=[1], soft_limits=[0])
    for _ in range(3):
        execution_id = create(db, policy={"quota_policy_id": "q", "budget_ids": ["b"]})
        one(db, "ff_block_execution_for_admission", execution_id=execution_id, reason=reason, detail="why")
    assert table(db, "select distinct eligibility_state as state from ff_exec_core") == [
        {"state": eligibility}
    ]
    (row,) = stuck(db).values()
    assert (row["kind"], row["lane_id"], row["waiting"]) == (kind, "default", 3)
    assert row["waits_for"].endswith("why")
    assert violations(db) == []


def test_a_flow_that_was_never_started(db, clock):
    clock.freeze()
    flow_id = flow(db, flow_kind="etl", hold=True)
    nodes(db, flow_id, 2)
    clock.advance(HOUR)
    (row,) = stuck(db).values()
    assert (row["kind"], row["flow_id"], row["waiting"]) == ("flow_not_started", flow_id, 2)
    one(db, "ff_start_flow", flow_id=flow_id)
    assert "flow_not_started" not in stuck(db)


def test_ends_that_were_not_passed_on(db, clock):
    clock.freeze()
    worker(db)
    flow_id = flow(db)
    first, _ = nodes(db, flow_id, 2)
    db.execute(
        "insert into ff_flow_dispatch (event_id, flow_id, execution_id, created_at_ms, next_dispatch_at_ms, outcome)"
        " values (1, %s, %s, %s, %s, 'success')",
        [flow_id, first.rsplit(":", maxsplit=1)[-1], clock.now(), clock.now()],
    )
    assert stuck(db) == {}
    clock.advance(10_000)
    (row,) = stuck(db).values()
    assert (row["kind"], row["execution_id"], row["flow_id"]) == ("not_dispatched", first, flow_id)


def test_a_cancelled_flow_whose_members_live_on(db, clock):
    clock.freeze()
    flow_id = flow(db)
    nodes(db, flow_id, 1)
    one(db, "ff_start_flow", flow_id=flow_id)
    take(db, lease_ttl_ms=DAY)
    one(db, "ff_cancel_flow_header", flow_id=flow_id, policy="cancel_all", reason="enough")
    clock.advance(HOUR)
    row = stuck(db)["cancel_unfinished"]
    assert (row["flow_id"], row["waiting"]) == (flow_id, 1)
    assert row["waits_for"].endswith("enough")


def test_what_maintenance_cannot_process(db, clock):
    since = clock.freeze()

    made = [create(db, delay_ms=1) for _ in range(3)]
    flow_id = flow(db)
    nodes(db, flow_id, 1)
    db.execute(
        "create function test_bad() returns trigger language plpgsql as $$ begin raise 'bad row'; end $$"
    )
    db.execute("create trigger bad before update on ff_execution for each row execute function test_bad()")
    db.execute("create trigger bad before insert on ff_flow_summary for each row execute function test_bad()")
    clock.advance(1)
    for _ in range(2):
        one(db, "ff_sweep_delayed")
        one(db, "ff_project_flows")
        clock.advance(1000)
    flows, delayed = table(
        db, "select * from ff_v_stuck where kind = 'maintenance_failed' order by waits_for"
    )
    assert (delayed["waiting"], delayed["execution_id"] in made) == (3, True)
    key = delayed["execution_uuid"]
    assert delayed["waits_for"] == f"ff_sweep_delayed, which fails on {key}, 2 times so far: P0001: bad row"
    assert delayed["since"].timestamp() * 1000 == pytest.approx(since + 1)
    assert "ff_reconciler_error" in delayed["what_to_do"]
    assert (flows["flow_id"], flows["waiting"]) == (flow_id, 1)
    db.execute("drop trigger bad on ff_execution")
    db.execute("drop trigger bad on ff_flow_summary")
    clock.advance(10_000)
    one(db, "ff_sweep_delayed")
    one(db, "ff_project_flows")
    assert "maintenance_failed" not in stuck(db)


def test_no_more_than_a_hundred_of_a_kind_are_shown_the_oldest(db, clock):
    clock.freeze()
    worker(db)
    made = []
    for _ in range(110):
        made.append(create(db, delay_ms=1000))
        clock.advance(1)
    clock.advance(HOUR)
    found = table(db, "select execution_id from ff_v_stuck where kind = 'delay_over' order by since")
    assert [row["execution_id"] for row in found] == made[:100]


def test_schedules_that_are_late_and_that_cannot_be_fired(db, clock):
    clock.freeze()
    one(db, "ff_create_schedule", schedule_id="it's 5 %", lane_id="closed", interval_ms=HOUR)
    one(db, "ff_create_schedule", schedule_id="s", lane_id="default", interval_ms=HOUR)
    clock.advance(HOUR + MINUTE - 1)
    assert stuck(db) == {}
    clock.advance(1)
    found = table(db, "select * from ff_v_stuck order by waits_for")
    assert [(row["kind"], row["waits_for"]) for row in found] == [
        ("schedule_late", "maintenance to fire schedule it's 5 %"),
        ("schedule_late", "maintenance to fire schedule s"),
    ]
    assert found[0]["for_how_long"].total_seconds() == 60
    one(db, "ff_set_lane_state", lane_id="closed", state="disabled")
    one(db, "ff_fire_schedules")
    (row,) = stuck(db).values()
    assert (row["kind"], row["lane_id"]) == ("schedule_failing", "closed")
    assert row["waits_for"] == "schedule it's 5 %, tried 1 times: lane closed is disabled"
    assert row["what_to_do"] == "remove what it says, or ff_pause_schedule('it''s 5 %')"


def test_what_is_due_on_a_stopped_lane_waits_for_the_lane(db, clock):
    """A worker would not help: claims on a stopped lane find nothing."""
    clock.freeze()
    create(db, "it's 5 %")
    take(db, "it's 5 %", lease_ttl_ms=1000)
    create(db, "it's 5 %", delay_ms=1000)
    one(db, "ff_set_lane_state", lane_id="it's 5 %", state="paused")
    clock.advance(HOUR)
    found = stuck(db)
    assert set(found) == {"lease_lapsed", "delay_over"}
    for row in found.values():
        assert row["what_to_do"] == "ff_set_lane_state('it''s 5 %', 'active') when the reason is gone"


# --- the advice ---


def stopped_lane(db, clock):
    create(db, "o'clock")
    one(db, "ff_set_lane_state", lane_id="o'clock", state="disabled")


def lapsed_lease(db, clock):
    create(db)
    take(db, lease_ttl_ms=1000)


def ended_delay(db, clock):
    create(db, delay_ms=1000)


def far_retry(db, clock):
    create(db, policy={"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 9 * DAY}}})
    one(db, "ff_fail", handle=take(db)["handle"], reason="no route")


def passed_deadline(db, clock):
    create(db, deadline_at_ms=clock.now() + 1000)


def passed_attempt_timeout(db, clock):
    create(db, policy={"timeout_policy": {"attempt_timeout_ms": 1000}})
    take(db, lease_ttl_ms=DAY)


def open_suspension(db, clock):
    suspended(db, OPERATOR_ONLY, reason_code="manual_pause")


def overdue_suspension(db, clock):
    suspended(db, timeout_ms=1000)


def escalated_suspension(db, clock):
    claim, _ = suspended(db, timeout_ms=1000, timeout_behavior="escalate")
    clock.advance(1000)
    one(db, "ff_expire_suspension", execution_id=claim["execution_id"])


def held_flow(db, clock):
    nodes(db, flow(db, hold=True), 1)


def undispatched_end(db, clock):
    flow_id = flow(db)
    nodes(db, flow_id, 2)
    one(db, "ff_complete", handle=take(db)["handle"])
    # As if the flow had been busy.
    db.execute(
        """insert into ff_flow_dispatch
               (event_id, flow_id, execution_id, created_at_ms, next_dispatch_at_ms, outcome, counted)
           select e.event_id, e.flow_id, e.execution_id, e.occurred_at_ms, e.occurred_at_ms, 'success', true
             from ff_event e where e.family = 'completion'"""
    )


def cancelled_flow(db, clock):
    nodes(db, flow_id := flow(db), 1)
    one(db, "ff_cancel_flow_header", flow_id=flow_id, policy="cancel_all")


def late_schedule(db, clock):
    one(db, "ff_create_schedule", schedule_id="s", lane_id="default", interval_ms=DAY)


def failing_schedule(db, clock):
    one(db, "ff_create_schedule", schedule_id="o'clock %", lane_id="closed", interval_ms=HOUR)
    one(db, "ff_set_lane_state", lane_id="closed", state="disabled")
    clock.advance(HOUR)
    one(db, "ff_fire_schedules")


@pytest.mark.parametrize(
    ("situation", "kind", "calls"),
    [
        (stopped_lane, "lane_stopped", 1),
        (lapsed_lease, "lease_lapsed", 1),
        (ended_delay, "delay_over", 1),
        (far_retry, "retry_far_away", 1),
        (passed_deadline, "deadline_passed", 2),
        (passed_attempt_timeout, "deadline_passed", 2),
        (open_suspension, "suspended_for_ever", 2),
        (overdue_suspension, "suspension_overdue", 2),
        (escalated_suspension, "escalated", 2),
        (held_flow, "flow_not_started", 2),
        (undispatched_end, "not_dispatched", 2),
        (cancelled_flow, "cancel_unfinished", 2),
        (late_schedule, "schedule_late", 2),
        (failing_schedule, "schedule_failing", 1),
    ],
)
def test_each_call_that_is_advised_helps(db, clock, situation, kind, calls):
    clock.freeze()
    situation(db, clock)
    clock.advance(DAY + HOUR)
    advice = stuck(db)[kind]["what_to_do"]
    found = re.findall(r"ff_\w+\((?:'(?:[^']|'')*'|[^()'])*\)", advice)
    assert len(found) == calls, advice
    for call in found:
        with db.transaction(force_rollback=True):
            table(db, "select * from " + call.replace("%", "%%"))
            assert kind not in stuck(db), call
            assert violations(db) == []
    assert kind in stuck(db)
