"""Every claim obeys the policy: work that may not start is parked and does not block other work."""

import pytest

from tests.quotas.support import HOUR, ask, budget, limits, many, parked, policy, state, sweep, under, use
from tests.sql import claim, create, execution, one, refused, rows, table, take, violations

WORKER = {"worker_id": "w", "worker_instance_id": "w-1"}


def batch(db, limit=10, **args):
    return rows(db, "ff_claim_many", lane_id="default", limit=limit, **WORKER, **args)


def finish(db, row):
    one(db, "ff_complete", handle=row["handle"])


def test_no_more_run_at_once_than_the_policy_allows(db):
    policy(db, at_once=2)
    eids = many(db, 4, "q")
    first, second = take(db), take(db)
    assert [first["execution_id"], second["execution_id"]] == eids[:2]
    assert claim(db) is None
    finish(db, first)
    assert take(db)["execution_id"] == eids[2]
    assert claim(db) is None
    assert violations(db) == []


def test_no_more_start_in_a_window_than_the_policy_allows(db, clock):
    now = clock.freeze()
    policy(db, per_window=2, window=10)
    eids = many(db, 3, "q")
    for _ in range(2):
        finish(db, take(db))
    assert claim(db) is None
    row = execution(db, eids[2])
    assert row["public_state"] == "rate_limited"
    assert row["blocking_reason"] == "waiting_for_quota"
    assert row["not_before_ms"] == now + 10_000
    clock.advance(9_999)
    assert claim(db) is None
    clock.advance(1)
    assert take(db)["execution_id"] == eids[2]
    assert violations(db) == []


def test_what_is_parked_for_a_slot_has_no_time_and_says_what_it_waits_for(db):
    policy(db, at_once=1)
    many(db, 2, "q")
    take(db)
    assert claim(db) is None
    (row,) = table(db, "select * from ff_exec_core where eligibility_state = 'blocked_by_quota'")
    assert row["not_before_ms"] is None
    assert row["blocking_detail"] == "q"
    assert row["public_state"] == "rate_limited"
    assert row["attempt_state"] == "pending_first_attempt"


def test_a_refusal_parks_the_candidate_and_49_more(db):
    policy(db, at_once=1)
    many(db, 61, "q")
    take(db)
    assert claim(db) is None
    assert parked(db) == 50
    assert claim(db) is None
    assert parked(db) == 60
    assert violations(db) == []


def test_only_executions_of_that_policy_on_that_lane_are_parked(db):
    policy(db, at_once=1)
    policy(db, "other", at_once=1)
    many(db, 3, "q", priorities=[9] * 3)
    many(db, 1, "other")
    elsewhere = under(db, lane="elsewhere")
    take(db)
    assert take(db)["priority"] == 0
    assert parked(db) == 2
    assert state(db, elsewhere) == "eligible_now"


@pytest.mark.parametrize("limit", [1, 5])
def test_a_full_policy_does_not_hide_the_rest_of_the_lane(db, limit):
    policy(db, at_once=1)
    policy(db, "wide", at_once=9)
    many(db, 1100, "q", priorities=[9] * 1100)
    take(db)
    plain, other = create(db), under(db, "wide", priority=1)
    found = [row["execution_id"] for row in batch(db, limit)]
    # Behind a thousand of a full policy, work that needs no admission comes first; nothing is out of reach.
    while len(found) < 2:
        more = [row["execution_id"] for row in batch(db, limit)]
        assert more
        found += more
    assert sorted(found) == sorted([plain, other])


@pytest.mark.parametrize("limit", [1, 10])
def test_a_claim_locks_nothing_of_a_policy_that_is_locked(db, connect, limit):
    policy(db, at_once=5)
    (eid,) = many(db, 1, "q")
    holder, looker = connect(autocommit=False), connect(autocommit=False)
    holder.execute("select from ff_quota_policy for update")
    assert (batch(looker, limit) if limit > 1 else claim(looker) or []) == []
    holder.rollback()
    assert take(db)["execution_id"] == eid
    looker.rollback()


def test_priority_holds_between_limited_and_other_work(db):
    policy(db, at_once=9)
    eids = [
        create(db, priority=5),
        under(db, priority=4),
        create(db, priority=3),
        under(db, priority=2),
        create(db, priority=1),
    ]
    assert [take(db)["execution_id"] for _ in range(2)] == eids[:2]
    assert [row["execution_id"] for row in batch(db)] == eids[2:]


def test_capabilities_are_asked_of_limited_work_too(db):
    policy(db, at_once=9)
    needs = under(db, required_capabilities=["gpu"])
    assert claim(db) is None
    assert claim(db, capabilities=["a", "b", "c", "d", "e", "f"]) is None
    assert take(db, capabilities=["a", "b", "c", "d", "e", "gpu"])["execution_id"] == needs
    two = under(db, required_capabilities=["gpu"])
    assert take(db, capabilities=["gpu"])["execution_id"] == two


def test_namespaces_are_asked_of_limited_work_too(db):
    policy(db, at_once=9)
    eid = under(db, namespace="a")
    assert claim(db, namespace="b") is None
    assert take(db, namespace="a")["execution_id"] == eid


def test_a_batch_takes_what_there_is_room_for_and_goes_on(db):
    policy(db, "a", at_once=2)
    policy(db, "b", per_window=3)
    for name in "ab":
        many(db, 5, name, priorities=[5] * 5)
    plain = many(db, 4)
    found = batch(db, 20)
    assert len(found) == 2 + 3 + 4
    assert [row["execution_id"] for row in found][-4:] == plain
    assert parked(db) == 5
    assert batch(db) == []
    assert limits(db, "a")["active_concurrency"] == 2
    assert limits(db, "b")["window_count"] == 3
    assert violations(db) == []


def test_a_batch_of_mixed_work_is_admitted_like_single_claims(db, clock):
    clock.freeze()
    policy(db, at_once=3)
    crashed = under(db, priority=9)
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    paused = under(db, priority=8)
    assert take(db)["execution_id"] == crashed
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=0)
    clock.advance(30_000)
    many(db, 5, "q")
    create(db, deadline_at_ms=clock.now() + HOUR)
    found = {row["execution_id"]: row["handle_kind"] for row in batch(db, 20)}
    assert found.pop(crashed) == "reclaimed"
    assert found.pop(paused) == "resumed"
    assert list(found.values()) == ["fresh", "fresh"]
    assert limits(db)["active_concurrency"] == 3
    assert violations(db) == []


def test_a_resumed_attempt_is_charged_a_slot_and_no_start(db):
    policy(db, at_once=1, per_window=1)
    eid = under(db)
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=0)
    other = under(db, priority=9)
    row = take(db)
    assert (row["execution_id"], row["handle_kind"]) == (eid, "resumed")
    assert state(db, other) == "blocked_by_quota"
    assert limits(db)["window_count"] == 1
    one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    assert [row["handle_kind"] for row in batch(db)] == ["resumed"]


def test_a_resumed_attempt_waits_for_a_slot(db):
    policy(db, at_once=1)
    eid = under(db)
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=0)
    key = create(db, lane="elsewhere")
    ask(db, key)
    assert claim(db) is None
    row = execution(db, eid)
    assert (row["eligibility_state"], row["attempt_state"]) == ("blocked_by_quota", "attempt_interrupted")
    one(db, "ff_release_admission", quota_policy_id="q", execution_id=key)
    assert execution(db, eid)["public_state"] == "resumable"
    assert take(db)["handle_kind"] == "resumed"


def test_a_reclaimed_attempt_is_charged_a_slot_and_no_start_and_is_never_parked(db, clock):
    clock.freeze()
    policy(db, at_once=1, per_window=2)
    eid = under(db)
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    assert ask(db, create(db, lane="elsewhere"), hold_ms=1000)["outcome"] == "admitted"
    behind = create(db)
    # Crashed work stands in front, its slot is taken: it stays as it is, and others are found.
    assert take(db)["execution_id"] == behind
    assert claim(db) is None
    row = execution(db, eid)
    assert (row["lifecycle_phase"], row["eligibility_state"]) == ("active", "not_applicable")
    clock.advance(1000)
    again = take(db)
    assert (again["execution_id"], again["handle_kind"]) == (eid, "reclaimed")
    assert limits(db)["window_count"] == 2
    assert violations(db) == []


def test_a_retry_is_charged_again(db):
    policy(db, per_window=1)
    at_once = {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}
    eid = under(db, policy=at_once)
    one(db, "ff_fail", handle=take(db)["handle"])
    assert claim(db) is None
    assert state(db, eid) == "blocked_by_quota"


def test_a_grant_holds_the_slot_until_it_expires(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    eid = under(db, priority=1)
    under(db)
    grant = one(db, "ff_claim_for_worker", lane_id="default", **WORKER)
    (held,) = table(db, "select * from ff_quota_reservation")
    assert held["expires_at_ms"] == grant["expires_at_ms"]
    assert claim(db) is None
    assert limits(db)["active_concurrency"] == 1
    row = one(db, "ff_claim_from_grant", grant_id=grant["grant_id"], **WORKER)
    assert row["execution_id"] == eid
    assert table(db, "select * from ff_quota_reservation") == []
    assert limits(db)["active_concurrency"] == 1
    finish(db, row)
    one(db, "ff_claim_for_worker", lane_id="default", **WORKER)
    clock.advance(5000)
    assert limits(db)["active_concurrency"] == 0
    take(db)
    assert violations(db) == []


@pytest.mark.parametrize("function", ["ff_claim_for_worker", "ff_issue_reclaim_grant"])
def test_a_grant_to_reclaim_keeps_the_slot_of_the_lapsed_lease(db, clock, function):
    clock.freeze()
    policy(db, at_once=1)
    eid = under(db, priority=1)
    waiting = under(db)
    take(db, lease_ttl_ms=100)
    assert claim(db) is None
    clock.advance(100)
    target = {"execution_id": eid} if function == "ff_issue_reclaim_grant" else {"lane_id": "default"}
    grant = one(db, function, **target, **WORKER)
    assert len(table(db, "select * from ff_quota_reservation")) == 1
    assert state(db, waiting) == "blocked_by_quota"
    assert claim(db) is None
    row = one(db, "ff_claim_from_grant", grant_id=grant["grant_id"], **WORKER)
    assert (row["outcome"], row["execution_id"]) == ("claimed", eid)
    assert violations(db) == []


def targeted(db, eid):
    return one(db, "ff_issue_claim_grant", execution_id=eid, **WORKER)


def test_a_targeted_grant_is_refused_and_parks_nothing(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    eids = many(db, 2, "q")
    grant = targeted(db, eids[0])
    (held,) = table(db, "select * from ff_quota_reservation")
    assert held["expires_at_ms"] == grant["expires_at_ms"]
    assert targeted(db, eids[0])["outcome"] == "already_granted"
    with refused("concurrency_limit_exceeded") as refusal:
        targeted(db, eids[1])
    assert refusal.detail["retry_after_ms"] is None
    assert refusal.detail["quota_policy_id"] == "q"
    assert state(db, eids[1]) == "eligible_now"
    row = one(db, "ff_claim_execution", execution_id=eids[0], grant_id=grant["grant_id"], **WORKER)
    finish(db, row)
    targeted(db, eids[1])


def test_a_targeted_grant_reports_when_to_retry(db, clock):
    clock.freeze()
    policy(db, per_window=1, window=10)
    eids = many(db, 2, "q")
    targeted(db, eids[0])
    clock.advance(1_000)
    with refused("rate_limit_exceeded") as refusal:
        targeted(db, eids[1])
    assert refusal.detail["retry_after_ms"] == 9_000


def test_a_targeted_claim_reports_a_budget(db):
    budget(db, "b", used=10)
    eid = create(db, policy={"budget_ids": ["b"]})
    with refused("budget_exceeded") as refusal:
        targeted(db, eid)
    assert refusal.detail["budget_id"] == "b"
    assert refusal.detail["retry_after_ms"] is None
    use(db, "b", 9)
    grant = targeted(db, eid)
    use(db, "b", 10)
    with refused("budget_exceeded"):
        one(db, "ff_claim_execution", execution_id=eid, grant_id=grant["grant_id"], **WORKER)
    assert state(db, eid) == "eligible_now"


def test_a_policy_attached_after_the_grant_is_asked_when_it_is_redeemed(db):
    policy(db, at_once=1)
    under(db)
    take(db)
    eid = create(db)
    grant = targeted(db, eid)
    one(db, "ff_attach_quota", quota_policy_id="q", execution_id=eid)
    for function, args in (
        ("ff_claim_execution", {"execution_id": eid}),
        ("ff_claim_from_grant", {}),
    ):
        with refused("concurrency_limit_exceeded"):
            one(db, function, grant_id=grant["grant_id"], **WORKER, **args)


def test_paused_work_is_admitted_by_every_way_to_resume_it(db):
    policy(db, at_once=1)
    eid = under(db)
    one(db, "ff_delay", handle=take(db)["handle"], delay_ms=0)
    key = create(db, lane="elsewhere")
    ask(db, key)
    with refused("concurrency_limit_exceeded"):
        targeted(db, eid)
    one(db, "ff_release_admission", quota_policy_id="q", execution_id=key)
    grant = targeted(db, eid)
    assert grant["kind"] == "resume"
    assert ask(db, key)["outcome"] == "concurrency_exceeded"
    row = one(db, "ff_claim_from_resume_grant", grant_id=grant["grant_id"], **WORKER)
    assert row["handle_kind"] == "resumed"
    one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    grant = targeted(db, eid)
    one(db, "ff_claim_resumed_execution", execution_id=eid, grant_id=grant["grant_id"], **WORKER)
    assert limits(db)["active_concurrency"] == 1


def test_crashed_work_is_admitted_by_every_way_to_reclaim_it(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    eid = under(db)
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    key = create(db, lane="elsewhere")
    ask(db, key, hold_ms=1000)
    with refused("concurrency_limit_exceeded"):
        one(db, "ff_issue_reclaim_grant", execution_id=eid, **WORKER)
    assert execution(db, eid)["ownership_state"] == "leased"
    clock.advance(1000)
    grant = one(db, "ff_issue_reclaim_grant", execution_id=eid, **WORKER)
    assert grant["outcome"] == "granted"
    assert ask(db, key)["outcome"] == "concurrency_exceeded"
    row = one(db, "ff_reclaim_execution", execution_id=eid, grant_id=grant["grant_id"], **WORKER)
    assert row["outcome"] == "claimed"
    assert limits(db)["active_concurrency"] == 1
    clock.advance(HOUR)
    grant = one(db, "ff_issue_reclaim_grant", execution_id=eid, **WORKER)
    assert one(db, "ff_claim_from_grant", grant_id=grant["grant_id"], **WORKER)["outcome"] == "claimed"
    assert violations(db) == []


def test_a_reclaim_that_has_lost_its_object_gives_the_slot_back(db, clock):
    clock.freeze()
    policy(db, at_once=1)
    eid = under(db)
    take(db, lease_ttl_ms=10)
    clock.advance(10)
    one(db, "ff_issue_reclaim_grant", execution_id=eid, **WORKER)
    one(db, "ff_delay_execution", execution_id=eid, delay_ms=HOUR, source="operator_override")
    assert limits(db)["active_concurrency"] == 0
    assert violations(db) == []


def test_an_operator_needs_no_admission(db):
    policy(db, at_once=1)
    eids = many(db, 2, "q")
    take(db)
    row = one(db, "ff_issue_grant_and_claim", execution_id=eids[1])
    assert limits(db)["active_concurrency"] == 2
    finish(db, row)
    assert violations(db) == []


def test_an_exhausted_budget_parks_and_a_free_one_lets_go(db):
    budget(db, "b", used=10)
    budget(db, "free")
    many(db, 60, policy={"budget_ids": ["free", "b"]}, priorities=[9] * 60)
    plain = create(db)
    assert take(db)["execution_id"] == plain
    assert parked(db) == 50
    (row,) = table(db, "select * from ff_exec_core where blocking_reason = 'waiting_for_budget' limit 1")
    assert (row["public_state"], row["not_before_ms"]) == ("rate_limited", None)
    assert row["blocking_detail"] == "b"
    assert claim(db) is None
    assert sweep(db) == 0
    use(db, "b", 9)
    take(db)
    assert parked(db) == 0
    assert violations(db) == []


def test_budgets_come_before_the_policy(db):
    budget(db, "b", used=10)
    policy(db, per_window=1)
    eid = under(db, policy={"budget_ids": ["b"]})
    assert claim(db) is None
    assert state(db, eid) == "blocked_by_budget"
    assert limits(db)["window_count"] == 0


@pytest.mark.parametrize(
    ("mode", "breached", "stops"), [("strict", False, True), ("warn", False, False), ("warn", True, True)]
)
def test_what_stops_work_is_a_breach_or_a_strict_limit(db, mode, breached, stops):
    budget(db, "b", used=10, mode=mode)
    db.execute("update ff_budget set breached = %s", [breached])
    create(db, policy={"budget_ids": ["b"]})
    assert (claim(db) is None) == stops
    assert [row["execution_id"] for row in batch(db)] == []


def test_a_budget_without_a_hard_limit_stops_no_work(db):
    budget(db, "b", used=10, hard=0)
    create(db, policy={"budget_ids": ["b"]})
    take(db)


def test_a_batch_passes_exhausted_budgets_over(db):
    budget(db, "b", used=10)
    many(db, 3, policy={"budget_ids": ["b"]}, priorities=[9] * 3)
    plain = many(db, 2)
    assert [row["execution_id"] for row in batch(db)] == plain
    assert parked(db) == 3


def test_one_that_another_budget_stops_waits_for_that_one(db):
    budget(db, "a", used=10)
    budget(db, "b", used=10)
    create(db, policy={"budget_ids": ["a", "b"]})
    assert claim(db) is None
    use(db, "a", 0)
    assert claim(db) is None
    (row,) = table(db, "select * from ff_exec_core")
    assert (row["blocking_detail"], row["blocked_budget_id"]) == ("b", "b")
    use(db, "b", 0)
    take(db)


def test_members_of_a_held_flow_are_neither_claimed_nor_parked(db):
    policy(db, at_once=1)
    flow = one(db, "ff_create_flow", hold=True)["flow_id"]
    eid = under(db, flow_id=flow)
    under(db)
    take(db)
    assert claim(db) is None
    assert state(db, eid) == "eligible_now"
    one(db, "ff_start_flow", flow_id=flow)
    assert claim(db) is None
    assert state(db, eid) == "blocked_by_quota"
