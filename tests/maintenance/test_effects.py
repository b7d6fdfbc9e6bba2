"""The effects of each sweep; and of claims when no maintenance runs."""

import psycopg
import pytest

from tests.budgets.support import budget, report, spend, used
from tests.flows.graph import begin, flow, link, node, state
from tests.maintenance.support import EXECUTION, IN_MS, Due, make, poison, repair, sweep
from tests.sql import claim, create, events, execution, one, rows, table, take, violations
from tests.suspensions.support import run, suspended


@pytest.fixture(autouse=True)
def now(clock):
    return clock.freeze()


def row(db, eid, *names):
    found = execution(db, eid)
    return tuple(found[name] for name in names)


def test_a_lapsed_lease_waits_for_a_claim_and_costs_no_retry(db, clock):
    create(db, policy={"retry_policy": {"max_retries": 3}})
    held = take(db, lease_ttl_ms=IN_MS)
    clock.advance(IN_MS)
    sweep(db, "sweep_expired_leases")
    eid = held["execution_id"]
    assert row(db, eid, "public_state", "retry_count", "lease_id") == ("active", 0, held["lease_id"])
    assert events(db, eid)[-1] == "lease/expired:ttl"
    again = take(db)
    assert (again["handle_kind"], row(db, eid, "retry_count", "lease_reclaim_count")) == ("reclaimed", (0, 1))


def test_a_renewed_lease_is_looked_at_again_when_it_ends(db, clock):
    create(db)
    held = take(db, lease_ttl_ms=IN_MS)
    clock.advance(IN_MS - 1)
    renewed = one(db, "ff_renew", handle=held["handle"], lease_ttl_ms=IN_MS)
    clock.advance(1)
    assert sweep(db, "sweep_expired_leases") == (0, 0, False)
    found = execution(db, held["execution_id"])
    assert found["lease_check_at_ms"] == found["lease_expires_at_ms"] == renewed["lease_expires_at_ms"]
    clock.set(renewed["lease_expires_at_ms"])
    assert sweep(db, "sweep_expired_leases") == (1, 0, False)


def test_renewed_leases_take_no_place_of_those_that_lapsed(db, clock):
    for _ in range(8):
        create(db)
    held = [take(db, lease_ttl_ms=IN_MS) for _ in range(8)]
    clock.advance(IN_MS - 1)
    for lease in held[:6]:
        one(db, "ff_renew", handle=lease["handle"], lease_ttl_ms=60_000)
    clock.advance(1)
    assert sweep(db, "sweep_expired_leases", limit=2)[0] == 2


def test_an_attempt_that_timed_out_is_tried_again_if_its_policy_says_so(db, clock):
    policy = {
        "timeout_policy": {"attempt_timeout_ms": IN_MS},
        "retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 100}},
    }
    create(db, policy=policy)
    eid = take(db, lease_ttl_ms=60_000)["execution_id"]
    clock.advance(IN_MS)
    assert sweep(db, "sweep_attempt_timeouts") == (1, 0, False)
    assert row(db, eid, "public_state", "retry_count", "failure_category") == (
        "delayed",
        1,
        "attempt_timeout",
    )
    clock.advance(100)
    assert take(db, lease_ttl_ms=60_000)["attempt_type"] == "retry"
    clock.advance(IN_MS)
    assert sweep(db, "sweep_attempt_timeouts") == (1, 0, False)
    assert row(db, eid, "public_state", "failure_reason") == ("expired", "attempt_timeout")


@pytest.mark.parametrize("phase", ["runnable", "delayed", "active", "suspended"])
def test_a_deadline_ends_an_execution_in_any_phase(db, clock, now, phase):
    options = {"delay_ms": IN_MS - 1} if phase == "delayed" else {}
    if phase == "suspended":
        eid = suspended(db, create={"deadline_at_ms": now + IN_MS})[0]["execution_id"]
    else:
        eid = create(db, deadline_at_ms=now + IN_MS, **options)
        if phase == "active":
            take(db)
    clock.advance(IN_MS)
    assert sweep(db, "sweep_deadlines") == (1, 0, False)
    assert row(db, eid, "public_state", "failure_reason") == ("expired", "execution_deadline")
    assert violations(db) == []


def test_a_deadline_and_a_timeout_are_each_left_to_their_own_sweep(db, clock, now):
    timed = create(db, policy={"timeout_policy": {"attempt_timeout_ms": IN_MS}})
    take(db, lease_ttl_ms=60_000)
    late = create(db, deadline_at_ms=now + IN_MS)
    clock.advance(IN_MS)
    assert sweep(db, "sweep_deadlines") == (1, 0, False)
    assert (state(db, timed), state(db, late)) == ("active", "expired")
    assert sweep(db, "sweep_attempt_timeouts") == (1, 0, False)


def test_a_delay_ends_without_touching_deadline_or_attempt(db, clock, now):
    create(db, deadline_at_ms=now + 10**6)
    held = take(db)
    one(db, "ff_delay", handle=held["handle"], delay_ms=IN_MS)
    clock.advance(IN_MS)
    assert sweep(db, "sweep_delayed") == (1, 0, False)
    assert row(
        db, held["execution_id"], "public_state", "delay_until_ms", "deadline_at_ms", "attempt_state"
    ) == (
        "resumable",
        None,
        now + 10**6,
        "attempt_interrupted",
    )


@pytest.mark.parametrize(
    ("behavior", "public_state"),
    [
        ("fail", "failed"),
        ("cancel", "cancelled"),
        ("expire", "expired"),
        ("auto_resume_with_timeout_signal", "resumable"),
        ("escalate", "suspended"),
    ],
)
def test_a_suspension_times_out_as_it_says(db, clock, now, behavior, public_state):
    held, _ = suspended(db, timeout_at_ms=now + IN_MS, timeout_behavior=behavior)
    clock.advance(IN_MS)
    assert sweep(db, "sweep_suspensions") == (1, 0, False)
    assert state(db, held["execution_id"]) == public_state
    clock.advance(10**6)
    assert sweep(db, "sweep_suspensions") == (0, 0, False)
    assert violations(db) == []


def test_a_swept_worker_leaves_an_event_and_its_leases(db, clock):
    one(
        db,
        "ff_register_worker",
        worker_id="w",
        worker_instance_id="w-1",
        lanes=["default"],
        liveness_ttl_ms=IN_MS,
    )
    create(db)
    held = take(db, lease_ttl_ms=60_000)
    clock.advance(IN_MS)
    assert sweep(db, "sweep_workers") == (1, 0, False)
    assert [
        (e["event_type"], e["worker_instance_id"])
        for e in table(db, "select * from ff_event where family = 'worker' order by event_id desc limit 1")
    ] == [("ttl_swept", "w-1")]
    assert row(db, held["execution_id"], "ownership_state") == ("leased",)


def test_an_expired_grant_takes_its_quota_slot_with_it(db, clock):
    eid = create(db)
    worker = {"worker_id": "w", "worker_instance_id": "w-1"}
    made = one(db, "ff_issue_claim_grant", execution_id=eid, grant_ttl_ms=IN_MS, **worker)
    uuid = eid.rsplit(":", maxsplit=1)[-1]
    db.execute(
        "insert into ff_quota_reservation values ('q', %s, 0, %s, %s), ('later', %s, 0, %s, %s)",
        [uuid, made["expires_at_ms"] - IN_MS, made["expires_at_ms"], uuid, 0, made["expires_at_ms"] + 1],
    )
    clock.advance(IN_MS)
    assert sweep(db, "sweep_claim_grants") == (1, 0, False)
    assert table(db, "select quota_policy_id from ff_quota_reservation") == [{"quota_policy_id": "later"}]
    assert claim(db)


def test_an_expired_grant_wakes_those_who_found_its_execution_reserved(db, clock):
    eid = create(db)
    one(
        db,
        "ff_issue_claim_grant",
        execution_id=eid,
        grant_ttl_ms=IN_MS,
        worker_id="w",
        worker_instance_id="w-1",
    )
    assert claim(db, worker="other") is None
    assert table(db, "select wake_armed from ff_lane_registry") == [{"wake_armed": True}]
    clock.advance(IN_MS)
    sweep(db, "sweep_claim_grants")
    assert table(db, "select wake_armed from ff_lane_registry") == [{"wake_armed": False}]


def test_whatever_has_had_its_time_goes_and_nothing_else(db, clock, now):
    db.execute(
        """
        insert into ff_quota_policy (quota_policy_id, window_seconds, max_requests_per_window, max_concurrent,
                                     jitter_ms, created_at_ms, updated_at_ms) values ('q', 1, 1, 1, 0, 0, 0);
        insert into ff_quota_window select 'q', gen_random_uuid(), 0, ff_now_ms() + n from unnest('{0,1}'::int[]) n;
        insert into ff_quota_reservation
        select 'q', gen_random_uuid(), 0, 0, ff_now_ms() + 1000 + n from unnest('{0,1}'::int[]) n;
        insert into ff_budget_usage_dedup (budget_id, dedup_key, expires_at_ms, deltas_hash, outcome)
        select 'b', n, ff_now_ms() + 1000 + n, '', 'ok' from unnest('{0,1}'::int[]) n;
        insert into ff_reconciler_error (name, row_key, attempts, last_error, next_retry_at_ms)
        select 'sweep_delayed', n, 1, '', ff_now_ms() - 3599000 + n from unnest('{0,1}'::int[]) n;
        """
    )
    create(db, idempotency_key="a", policy={"dedup_window_ms": 1000})
    create(db, idempotency_key="b", policy={"dedup_window_ms": 1001})
    clock.advance(999)
    assert sweep(db, "sweep_expired") == (0, 0, False)
    clock.advance(1)
    assert sweep(db, "sweep_expired") == (5, 0, False)
    counted = [
        table(db, f"select count(*) as n from {name}")[0]["n"]
        for name in (
            "ff_quota_window",
            "ff_quota_reservation",
            "ff_budget_usage_dedup",
            "ff_reconciler_error",
            "ff_idempotency",
        )
    ]
    assert counted == [1] * 5
    clock.advance(1)
    assert sweep(db, "sweep_expired") == (5, 0, False)
    assert create(db, idempotency_key="a")


def test_events_of_one_family_that_cannot_be_deleted_do_not_keep_the_others(db, clock):
    run(db)
    worker = {"worker_id": "w", "worker_instance_id": "w-1", "lanes": ["default"]}
    one(db, "ff_register_worker", **worker)
    db.execute(
        "create function test_bad() returns trigger language plpgsql as $$ begin "
        "if old.family = 'lease' then raise exception 'bad event'; end if; return old; end $$"
    )
    db.execute("create trigger bad before delete on ff_event_log for each row execute function test_bad()")
    clock.advance(8 * 86_400_000)
    # Events are trimmed below the horizon of running transactions: this one must not be the oldest of them.
    db.execute("update ff_event_log set ord = 1, gen = 1")
    assert sweep(db, "trim_events")[1] == 1
    assert table(db, "select family, count(*) as n from ff_event group by 1") == [{"family": "lease", "n": 1}]
    assert sweep(db, "trim_events") == (0, 0, False)
    db.execute("drop trigger bad on ff_event_log")
    clock.advance(1000)
    assert sweep(db, "trim_events") == (1, 0, False)
    assert table(db, "select from ff_reconciler_error") == []


@pytest.mark.parametrize("member", [False, True])
def test_what_owes_a_budget_is_not_trimmed_when_a_failed_trim_is_tried_again(db, clock, member):
    """It ended without spend, its trim failed, and then usage was reported for it."""
    budget(db, release_on_terminal=True)
    eid = (
        node(db, flow(db), policy={"retention_ms": IN_MS})
        if member
        else create(db, policy={"retention_ms": IN_MS})
    )
    one(db, "ff_complete", handle=begin(db, eid)["handle"])
    clock.advance(IN_MS)
    bad = Due(0, "ff_execution", "execution_id", eid[-36:], "", lambda: False)
    poison(db, bad)
    assert sweep(db, "trim_retention")[:2] == (0, 1)
    repair(db, bad)
    spend(db, eid, 5, "late")
    clock.advance(1000)
    assert sweep(db, "trim_retention")[:2] == (0, 0)
    assert sweep(db, "sweep_terminal_spend")[:2] == (1, 0)
    assert used(db) == {"tokens": 0}
    clock.advance(1000)
    assert sweep(db, "trim_retention")[:2] == (1, 0)
    assert violations(db) == []


@pytest.mark.parametrize("name", ["sweep_delayed", "sweep_expired_leases"])
def test_claims_pass_over_a_due_row_that_maintenance_could_not_process(db, clock, name):
    (bad,) = make(db, clock, name, 1)
    clock.set(bad.due_ms)
    poison(db, bad)
    good = create(db, name)
    with pytest.raises(psycopg.errors.RaiseException):
        claim(db, name)
    assert sweep(db, name) == (0, 1, False)
    assert take(db, name)["execution_id"] == good
    repair(db, bad)
    clock.advance(1000)
    assert sweep(db, name) == (1, 0, False)
    assert take(db, name)["execution_id"].endswith(bad.value)


def test_claims_pass_over_due_work_under_a_quota_that_maintenance_could_not_process(db, clock):
    one(db, "ff_create_quota_policy", quota_policy_id="q", max_concurrent=9)
    stuck = create(db, delay_ms=IN_MS, policy={"quota_policy_id": "q"})
    clock.advance(IN_MS)
    bad = Due(0, "ff_execution", "execution_id", stuck[-36:], "", lambda: False)
    poison(db, bad)
    assert sweep(db, "sweep_delayed") == (0, 1, False)
    good = create(db, policy={"quota_policy_id": "q"})
    assert take(db)["execution_id"] == good
    assert claim(db) is None
    repair(db, bad)
    clock.advance(1000)
    assert sweep(db, "sweep_delayed") == (1, 0, False)
    assert take(db)["execution_id"] == stuck
    assert violations(db) == []


# No maintenance at all.


def test_a_claim_reclaims_what_a_dead_worker_held(db, clock):
    create(db)
    held = take(db, lease_ttl_ms=IN_MS)
    clock.advance(IN_MS)
    assert take(db, worker="other")["execution_id"] == held["execution_id"]


def test_a_claim_applies_an_attempt_timeout(db, clock):
    create(db, policy={"timeout_policy": {"attempt_timeout_ms": IN_MS}, "retry_policy": {"max_retries": 1}})
    held = take(db, lease_ttl_ms=60_000)
    clock.advance(IN_MS)
    for _ in range(3):
        if found := claim(db):
            break
        clock.advance(60_000)
    assert found
    assert (found["execution_id"], found["attempt_type"]) == (held["execution_id"], "retry")


def test_a_claim_passes_over_what_is_past_its_deadline_and_ends_it(db, clock, now):
    late = create(db, deadline_at_ms=now + IN_MS)
    clock.advance(1)  # the older one comes first
    good = create(db)
    clock.advance(IN_MS)
    assert take(db)["execution_id"] == good
    assert state(db, late) == "expired"


def test_a_claim_takes_what_a_delay_has_given_back(db, clock):
    eid = create(db, delay_ms=IN_MS)
    assert claim(db) is None
    clock.advance(IN_MS)
    assert take(db)["execution_id"] == eid


def test_a_claim_takes_what_a_forgotten_grant_had_reserved(db, clock):
    eid = create(db)
    one(
        db,
        "ff_issue_claim_grant",
        execution_id=eid,
        grant_ttl_ms=IN_MS,
        worker_id="w",
        worker_instance_id="w-1",
    )
    assert claim(db, worker="other") is None
    clock.advance(IN_MS)
    assert take(db, worker="other")["execution_id"] == eid


def test_a_claim_passes_on_an_end_that_met_a_busy_flow(db, connect):
    fid = flow(db)
    up, down = node(db, fid), node(db, fid)
    link(db, fid, up, down)
    handle = begin(db, up)["handle"]
    with connect(autocommit=False) as other:
        other.execute("select from ff_flow_core where flow_id = %s for update", [fid])
        one(db, "ff_complete", handle=handle)
        assert claim(db) is None
        other.rollback()
    assert take(db)["execution_id"] == down


def test_a_claim_lets_go_what_was_parked_when_there_is_room_again(db, clock):
    one(db, "ff_create_quota_policy", quota_policy_id="q", window_seconds=1, max_requests_per_window=1)
    first, second = (create(db, priority=n, policy={"quota_policy_id": "q"}) for n in (1, 0))
    assert take(db)["execution_id"] == first
    assert claim(db) is None
    assert row(db, second, "eligibility_state") == ("blocked_by_quota",)
    clock.advance(1000)
    assert take(db)["execution_id"] == second


def test_a_claim_takes_what_was_parked_for_a_budget_that_is_free_again(db):
    budget(db, on_hard_limit="block")
    eid = create(db, policy={"budget_ids": ["b"]})
    report(db, 101)
    assert claim(db) is None
    assert row(db, eid, "eligibility_state") == ("blocked_by_budget",)
    one(db, "ff_reset_budget", budget_id="b")
    assert take(db)["execution_id"] == eid


def test_claims_leave_what_a_breach_or_a_cancelled_flow_will_cancel(db, connect):
    """It is neither cancelled nor claimed."""
    budget(db, on_hard_limit="cancel_all")
    create(db, policy={"budget_ids": ["b"]})
    report(db, 101)
    fid = flow(db)
    member = node(db, fid)
    with connect(autocommit=False) as other:
        other.execute(EXECUTION, [member[-36:]])
        one(db, "ff_cancel_flow", flow_id=fid)
    assert claim(db) is None


def test_a_claim_fires_a_schedule_that_is_due(db, clock):
    one(db, "ff_create_schedule", schedule_id="s", lane_id="default", interval_ms=60_000)
    assert claim(db) is None
    clock.advance(60_000)
    assert claim(db)


def test_a_submission_takes_over_an_expired_key_before_the_sweep(db, clock):
    first = create(db, idempotency_key="k", policy={"dedup_window_ms": IN_MS})
    clock.advance(IN_MS)
    assert create(db, idempotency_key="k") != first


def test_a_worker_that_lapsed_is_not_alive_and_may_register_anew(db, clock):
    worker = {"worker_id": "w", "worker_instance_id": "w-1", "lanes": ["default"], "liveness_ttl_ms": IN_MS}
    one(db, "ff_register_worker", **worker)
    clock.advance(IN_MS)
    assert [w["alive"] for w in rows(db, "ff_list_workers")] == [False]
    assert one(db, "ff_register_worker", **{**worker, "worker_id": "x"})["outcome"] == "registered"
