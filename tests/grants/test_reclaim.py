"""Reclaim: crashed work is claimed again, as often as its policy allows, and never under a live lease."""

import uuid

import pytest

from tests.sql import create, events, execution, one, refused, rows, table, take, violations

WORKER = {"worker_id": "w", "worker_instance_id": "w-1"}
OTHER = {"worker_id": "x", "worker_instance_id": "x-1"}
UNKNOWN_ID = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")


def lapse(db, clock, **args):
    """An execution whose lease has just run out, unmarked."""
    row = create(db, **args) and take(db, worker="crashed", lease_ttl_ms=10)
    clock.advance(10)
    return row


def issue(db, eid, **args):
    return one(db, "ff_issue_reclaim_grant", execution_id=eid, **{**WORKER, **args})


def reclaim(db, eid, grant_id, **args):
    return one(db, "ff_reclaim_execution", execution_id=eid, grant_id=grant_id, **{**WORKER, **args})


def grants(db):
    return table(db, "select * from ff_claim_grant")


def claimed_nothing(row):
    """No column but outcome and count is set."""
    return {name for name, value in row.items() if value is not None} == {"outcome", "reclaim_count"}


def crash(db, clock, eid, times):
    """Reclaims and loses it again, that often."""
    for _ in range(times):
        reclaim(db, eid, issue(db, eid)["grant_id"], lease_ttl_ms=10)
        clock.advance(10)


# ff_issue_reclaim_grant


def test_a_lapsed_lease_is_granted_from_its_first_millisecond_and_marked(db, clock):
    now = clock.freeze()
    row = create(db) and take(db, lease_ttl_ms=10)
    eid = row["execution_id"]
    clock.advance(9)
    live = issue(db, eid)
    assert (live["outcome"], live["grant_id"], live["expires_at_ms"]) == ("not_reclaimable", None, None)
    assert execution(db, eid)["ownership_state"] == "leased"
    clock.advance(1)
    got = issue(db, eid, grant_ttl_ms=100)
    (stored,) = grants(db)
    assert got == {
        "outcome": "granted",
        "grant_id": stored["grant_id"],
        "lane_id": "default",
        "expires_at_ms": now + 110,
        "reclaim_count": 0,
        "detail": None,
    }
    assert stored["kind"] == "reclaim"
    after = execution(db, eid)
    assert (after["ownership_state"], after["lease_id"]) == ("lease_expired_reclaimable", row["lease_id"])
    assert after["attempt_state"] == "attempt_interrupted"
    assert events(db, eid) == ["lease/acquired", "lease/expired:ttl"]
    with refused("lease_expired"):
        one(db, "ff_complete", handle=row["handle"])
    assert violations(db) == []


def test_marked_and_revoked_leases_are_granted_without_saying_it_twice(db, clock):
    clock.freeze()
    marked = lapse(db, clock)["execution_id"]
    one(db, "ff_mark_lease_expired_if_due", execution_id=marked)
    revoked = (create(db, "q") and take(db, "q"))["execution_id"]
    one(db, "ff_revoke_lease", execution_id=revoked)
    for eid in (marked, revoked):
        before = events(db, eid)
        assert issue(db, eid)["outcome"] == "granted"
        assert events(db, eid) == before
    assert violations(db) == []


def test_the_same_worker_gets_the_same_reclaim_grant_and_others_none(db, clock):
    clock.freeze()
    eid = lapse(db, clock, required_capabilities=[])["execution_id"]
    first = issue(db, eid, grant_ttl_ms=100)
    clock.advance(99)
    assert issue(db, eid) == {**first, "outcome": "already_granted"}
    for other in (OTHER, {**WORKER, "worker_instance_id": "w-2"}):
        with refused("grant_already_exists") as refusal:
            issue(db, eid, **other)
        assert refusal.detail["expires_at_ms"] == first["expires_at_ms"]
        assert str(first["grant_id"]) not in str(refusal.error.diag.message_detail)
    clock.advance(1)
    assert issue(db, eid, **OTHER)["outcome"] == "granted"
    assert len(grants(db)) == 1


def test_only_a_capable_worker_is_granted_crashed_work(db, clock):
    clock.freeze()
    create(db, required_capabilities=["b", "a"])
    eid = take(db, capabilities=["a", "b"], lease_ttl_ms=10)["execution_id"]
    clock.advance(10)
    with refused("capability_mismatch") as refusal:
        issue(db, eid, capabilities=["c"])
    assert refusal.detail["missing"] == ["a", "b"]
    assert execution(db, eid)["ownership_state"] == "leased"  # a refusal marks nothing
    assert issue(db, eid, capabilities=["a", "b", "c"])["outcome"] == "granted"


def test_work_of_a_live_worker_is_not_reclaimable(db, clock):
    clock.freeze()
    waiting, delayed = create(db, "q"), create(db, "q", delay_ms=1000)
    paused = create(db) and take(db)
    one(db, "ff_delay", handle=paused["handle"], delay_ms=0)
    done = create(db, "d") and take(db, "d")
    one(db, "ff_complete", handle=done["handle"])
    held = create(db, "h") and take(db, "h")
    for eid in (
        waiting,
        delayed,
        paused["execution_id"],
        done["execution_id"],
        held["execution_id"],
    ):
        before = execution(db, eid)
        got = issue(db, eid)
        assert (got["outcome"], got["grant_id"], got["expires_at_ms"]) == ("not_reclaimable", None, None)
        assert got["detail"]
        assert execution(db, eid) == before
    assert grants(db) == []


@pytest.mark.parametrize("state", ["paused", "disabled"])
def test_a_stopped_lane_grants_no_crashed_work(db, clock, state):
    clock.freeze()
    eid = lapse(db, clock)["execution_id"]
    one(db, "ff_set_lane_state", lane_id="default", state=state)
    with refused("lane_not_claimable") as refusal:
        issue(db, eid)
    assert (refusal.detail["lane_id"], refusal.detail["execution_id"]) == ("default", eid)
    assert execution(db, eid)["ownership_state"] == "leased"
    one(db, "ff_set_lane_state", lane_id="default", state="draining")
    assert issue(db, eid)["outcome"] == "granted"


def test_a_stopped_lane_still_says_that_there_is_nothing_to_reclaim(db, clock):
    clock.freeze()
    capped = lapse(db, clock, policy={"max_reclaim_count": 0})["execution_id"]
    waiting = create(db, "q")
    for lane in ("default", "q"):
        one(db, "ff_set_lane_state", lane_id=lane, state="paused")
    assert issue(db, waiting)["outcome"] == "not_reclaimable"
    assert issue(db, capped)["outcome"] == "reclaim_cap_exceeded"


# The cap


@pytest.mark.parametrize(
    ("policy", "cap"),
    [
        ({"max_reclaim_count": 0}, 0),
        ({"max_reclaim_count": 2}, 2),
        ({"timeout_policy": {"max_reclaim_count": 1}}, 1),
        ({"max_reclaim_count": 1, "timeout_policy": {"max_reclaim_count": 5}}, 1),
    ],
)
def test_at_the_cap_asking_for_a_grant_ends_the_execution(db, clock, policy, cap):
    clock.freeze()
    eid = lapse(db, clock, policy=policy)["execution_id"]
    crash(db, clock, eid, cap)
    got = issue(db, eid)
    assert (got["outcome"], got["grant_id"], got["reclaim_count"]) == ("reclaim_cap_exceeded", None, cap)
    row = execution(db, eid)
    assert (row["public_state"], row["failure_reason"]) == ("failed", "max_reclaims_exceeded")
    assert (row["lease_reclaim_count"], row["retry_count"]) == (cap, 0)
    states = [a["state"] for a in rows(db, "ff_list_attempts", execution_id=eid)]
    assert states == ["interrupted_reclaimed"] * (cap + 1)
    assert events(db, eid)[-2:] == ["lease/expired:ttl", "completion/failed:max_reclaims_exceeded"]
    assert grants(db) == []
    assert issue(db, eid)["outcome"] == "not_reclaimable"
    assert violations(db) == []


def test_at_the_cap_redeeming_a_grant_ends_the_execution(db, clock):
    clock.freeze()
    eid = lapse(db, clock)["execution_id"]
    crash(db, clock, eid, 2)
    grant = issue(db, eid)["grant_id"]
    got = reclaim(db, eid, grant, max_reclaim_count=2)
    assert (got["outcome"], got["reclaim_count"]) == ("reclaim_cap_exceeded", 2)
    assert claimed_nothing(got)
    assert execution(db, eid)["failure_reason"] == "max_reclaims_exceeded"
    assert grants(db) == []
    assert violations(db) == []


def test_a_caller_may_lower_the_cap_but_not_raise_it(db, clock):
    clock.freeze()
    eid = lapse(db, clock, policy={"max_reclaim_count": 1})["execution_id"]
    grant = issue(db, eid)["grant_id"]
    got = reclaim(db, eid, grant, max_reclaim_count=1000, lease_ttl_ms=10)
    assert (got["outcome"], got["reclaim_count"]) == ("claimed", 1)
    clock.advance(10)
    assert issue(db, eid)["outcome"] == "reclaim_cap_exceeded"
    other = lapse(db, clock)["execution_id"]
    assert reclaim(db, other, issue(db, other)["grant_id"], max_reclaim_count=0)["outcome"] == (
        "reclaim_cap_exceeded"
    )


def test_without_a_policy_the_cap_is_a_hundred(db, clock):
    clock.freeze()
    eid = lapse(db, clock)["execution_id"]
    db.execute("update ff_execution set lease_reclaim_count = 99")
    assert reclaim(db, eid, issue(db, eid)["grant_id"], lease_ttl_ms=10)["reclaim_count"] == 100
    clock.advance(10)
    assert issue(db, eid)["outcome"] == "reclaim_cap_exceeded"


# ff_reclaim_execution


def test_crashed_work_starts_again_as_a_new_attempt(db, clock):
    clock.freeze()
    old = lapse(db, clock, payload=b"p")
    eid = old["execution_id"]
    one(db, "ff_claim_for_worker", lane_id="default", **OTHER)
    clock.advance(5000)
    grant = issue(db, eid)["grant_id"]
    got = reclaim(db, eid, grant, lease_ttl_ms=500, worker_instance_id="restarted")
    assert (got["outcome"], got["reclaim_count"]) == ("claimed", 1)
    assert (got["handle_kind"], got["attempt_type"]) == ("reclaimed", "reclaim")
    assert (got["attempt_index"], got["lease_epoch"], got["payload"]) == (1, 2, b"p")
    assert got["lease_expires_at_ms"] == clock.now() + 500
    first, second = rows(db, "ff_list_attempts", execution_id=eid)
    assert (first["state"], first["outcome"]) == ("interrupted_reclaimed", "interrupted_reclaimed")
    assert (first["failure_reason"], first["release_op"]) == ("lease_expired", "reclaim")
    assert first["ended_at_ms"] == clock.now()
    assert (second["attempt_type"], second["previous_attempt_index"]) == ("reclaim", 0)
    assert second["worker_instance_id"] == "restarted"
    row = execution(db, eid)
    assert (row["lease_reclaim_count"], row["retry_count"], row["public_state"]) == (1, 0, "active")
    assert grants(db) == []
    assert events(db, eid) == ["lease/acquired", "lease/expired:ttl", "lease/reclaimed"]
    with refused("stale_lease"):
        one(db, "ff_complete", handle=old["handle"])
    assert one(db, "ff_complete", handle=got["handle"])["outcome"] == "completed"
    assert violations(db) == []


def test_the_attempt_of_a_revoked_lease_says_so(db):
    eid = (create(db) and take(db))["execution_id"]
    one(db, "ff_revoke_lease", execution_id=eid)
    got = reclaim(db, eid, issue(db, eid)["grant_id"])
    assert got["outcome"] == "claimed"
    attempt = rows(db, "ff_list_attempts", execution_id=eid)[0]
    assert (attempt["state"], attempt["failure_reason"]) == ("interrupted_reclaimed", "lease_revoked")
    assert events(db, eid)[-2:] == ["lease/revoked:operator", "lease/reclaimed"]
    assert violations(db) == []


def test_an_absent_foreign_or_ended_grant_is_not_found(db, clock):
    clock.freeze()
    eid = lapse(db, clock)["execution_id"]
    missing = reclaim(db, eid, UNKNOWN_ID)
    assert (missing["outcome"], missing["reclaim_count"]) == ("grant_not_found", 0)
    assert claimed_nothing(missing)
    grant = issue(db, eid, grant_ttl_ms=100)["grant_id"]
    assert reclaim(db, eid, UNKNOWN_ID)["outcome"] == "grant_not_found"
    assert reclaim(db, eid, UNKNOWN_ID, **OTHER)["outcome"] == "grant_not_found"
    clock.advance(100)
    for worker in (WORKER, OTHER):
        assert reclaim(db, eid, grant, **worker)["outcome"] == "grant_not_found"
    assert one(db, "ff_claim_from_grant", grant_id=grant, **WORKER)["outcome"] == "grant_not_found"
    clock.advance(-1)
    assert reclaim(db, eid, grant)["outcome"] == "claimed"
    assert reclaim(db, eid, grant)["outcome"] == "grant_not_found"


def test_a_grant_of_another_kind_is_not_found(db):
    eid = create(db)
    grant = one(db, "ff_issue_claim_grant", execution_id=eid, **WORKER)["grant_id"]
    assert reclaim(db, eid, grant)["outcome"] == "grant_not_found"
    assert [g["grant_id"] for g in grants(db)] == [grant]


def test_the_grant_of_another_worker_is_refused(db, clock):
    clock.freeze()
    eid = lapse(db, clock)["execution_id"]
    grant = issue(db, eid)["grant_id"]
    one(db, "ff_set_lane_state", lane_id="default", state="paused")
    with refused("invalid_claim_grant") as refusal:
        reclaim(db, eid, grant, **OTHER)
    assert refusal.detail == {"kind": "invalid_claim_grant", "execution_id": eid}
    with refused("lane_not_claimable"):
        reclaim(db, eid, grant)
    with refused("lane_not_claimable"):
        one(db, "ff_claim_from_grant", grant_id=grant, **WORKER)
    one(db, "ff_set_lane_state", lane_id="default", state="draining")
    assert one(db, "ff_claim_from_grant", grant_id=grant, **WORKER)["outcome"] == "claimed"


def test_work_that_moved_on_since_the_grant_is_left_alone_and_the_grant_deleted(db, clock):
    clock.freeze()
    eid = lapse(db, clock)["execution_id"]
    grant = issue(db, eid)["grant_id"]
    one(db, "ff_delay_execution", execution_id=eid, source="operator_override", delay_ms=1000)
    before = execution(db, eid)
    got = reclaim(db, eid, grant)
    # A grant that went with the work it was for is as good.
    assert got["outcome"] in ("not_reclaimable", "grant_not_found")
    assert claimed_nothing(got)
    assert grants(db) == []
    assert execution(db, eid) == before
    assert violations(db) == []


def test_a_passed_deadline_ends_crashed_work_instead(db, clock):
    now = clock.freeze()
    eid = lapse(db, clock, deadline_at_ms=now + 1000)["execution_id"]
    grant = issue(db, eid)["grant_id"]
    clock.set(now + 1000)
    got = reclaim(db, eid, grant)
    assert (got["outcome"], got["reclaim_count"]) == ("not_reclaimable", 0)
    assert claimed_nothing(got)
    row = execution(db, eid)
    assert (row["public_state"], row["failure_reason"]) == ("expired", "execution_deadline")
    assert grants(db) == []
    late = lapse(db, clock, deadline_at_ms=clock.now() + 10)["execution_id"]
    assert issue(db, late)["outcome"] == "not_reclaimable"
    assert execution(db, late)["public_state"] == "expired"
    assert violations(db) == []


@pytest.mark.parametrize("when", ["issue", "redeem"])
@pytest.mark.parametrize(("retries", "state"), [(0, "expired"), (1, "waiting")])
def test_a_passed_attempt_timeout_is_no_reclaim(db, clock, when, retries, state):
    clock.freeze()
    policy = {
        "timeout_policy": {"attempt_timeout_ms": 50},
        "retry_policy": {"max_retries": retries, "backoff": {"type": "fixed", "delay_ms": 0}},
    }
    eid = lapse(db, clock, policy=policy)["execution_id"]
    if when == "redeem":
        grant = issue(db, eid)["grant_id"]
    clock.advance(40)
    got = issue(db, eid) if when == "issue" else reclaim(db, eid, grant)
    assert got["outcome"] == "not_reclaimable"
    row = execution(db, eid)
    assert (row["public_state"], row["lease_reclaim_count"], row["retry_count"]) == (state, 0, retries)
    assert grants(db) == []
    assert violations(db) == []
    if retries:
        assert take(db)["attempt_type"] == "retry"  # at once: no grant hides it


def test_crashed_work_whose_time_ran_out_is_not_granted_even_at_the_cap(db, clock):
    now = clock.freeze()
    eid = lapse(db, clock, deadline_at_ms=now + 10, policy={"max_reclaim_count": 0})["execution_id"]
    assert issue(db, eid)["outcome"] == "not_reclaimable"
    assert execution(db, eid)["public_state"] == "expired"


def test_a_negative_cap_is_refused(db, clock):
    clock.freeze()
    eid = lapse(db, clock)["execution_id"]
    grant = issue(db, eid)["grant_id"]
    with refused("invalid_input") as refusal:
        reclaim(db, eid, grant, max_reclaim_count=-1)
    assert refusal.detail["arg"] == "p_max_reclaim_count"


def test_an_unknown_execution_is_not_found(db):
    for eid in (f"{{fp:7}}:{UNKNOWN_ID}", f"{{fp:9}}:{UNKNOWN_ID}"):
        with refused("execution_not_found") as refusal:
            issue(db, eid)
        assert refusal.detail["execution_id"] == eid
        with refused("execution_not_found"):
            reclaim(db, eid, UNKNOWN_ID)


def test_a_reclaim_grant_is_redeemed_by_its_id_alone_with_the_count(db, clock):
    clock.freeze()
    eid = lapse(db, clock)["execution_id"]
    crash(db, clock, eid, 1)
    got = one(db, "ff_claim_from_grant", grant_id=issue(db, eid)["grant_id"], **WORKER)
    assert (got["outcome"], got["reclaim_count"], got["handle_kind"]) == ("claimed", 2, "reclaimed")
    # ... and the count of an execution that is claimed otherwise is returned too.
    one(db, "ff_delay", handle=got["handle"], delay_ms=0)
    grant = one(db, "ff_issue_claim_grant", execution_id=eid, **WORKER)["grant_id"]
    resumed = one(db, "ff_claim_from_grant", grant_id=grant, **WORKER)
    assert (resumed["outcome"], resumed["reclaim_count"], resumed["handle_kind"]) == ("claimed", 2, "resumed")


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_a_lease_that_ran_out_ends_before_the_next_begins_however_time_passes(db, function):
    (found,) = table(db, "select pronamespace::regnamespace as home from pg_proc where proname = 'ff_now_ms'")
    db.execute("create sequence public.test_leap start 1700000000000 increment 7")
    db.execute(
        f"create or replace function {found['home']}.ff_now_ms() returns bigint language sql volatile"
        " as $$ select nextval('public.test_leap') $$"
    )
    create(db)
    rows(db, function, lane_id="default", lease_ttl_ms=1, **WORKER)
    (row,) = rows(db, function, lane_id="default", **OTHER)
    assert row["handle_kind"] == "reclaimed"
    ended, began = table(
        db,
        "select event_type, occurred_at_ms as at_ms from ff_event where event_type in ('expired', 'reclaimed')"
        " order by event_id",
    )
    assert (ended["event_type"], began["event_type"]) == ("expired", "reclaimed")
    assert ended["at_ms"] <= began["at_ms"]
    assert violations(db) == []
