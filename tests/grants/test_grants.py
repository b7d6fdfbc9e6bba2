"""Grants: one execution reserved for one worker for a short while, and what becomes of the reservation."""

import uuid

import pytest

from tests.sql import claim, create, events, execution, one, refused, rows, table, take, violations
from tests.suspensions.support import seed

WORKER = {"worker_id": "w", "worker_instance_id": "w-1"}
OTHER = {"worker_id": "x", "worker_instance_id": "x-1"}
UNKNOWN_ID = uuid.UUID("018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
UNKNOWN = f"{{fp:7}}:{UNKNOWN_ID}"


def issue(db, eid, **args):
    return one(db, "ff_issue_claim_grant", execution_id=eid, **{**WORKER, **args})


def grants(db):
    return table(db, "select * from ff_claim_grant")


def pause(db, lane="default", **args):
    """An execution whose attempt is paused and ready to go on."""
    row = create(db, lane, **args) and take(db, lane)
    assert one(db, "ff_delay", handle=row["handle"], delay_ms=0)["public_state"] == "resumable"
    return row


def lapse(db, clock, lane="default", **args):
    """An execution whose holder crashed."""
    row = create(db, lane, **args) and take(db, lane, worker="crashed", lease_ttl_ms=10)
    clock.advance(10)
    return row


# ff_issue_claim_grant


def test_a_grant_reserves_an_execution_without_touching_it(db, clock):
    now = clock.freeze()
    eid = create(db, required_capabilities=["a"])
    before = execution(db, eid)
    got = issue(
        db, eid, capabilities=["b", "a", "a"], grant_ttl_ms=700, admission_summary="because of the weather"
    )
    (stored,) = grants(db)
    assert got == {
        "outcome": "granted",
        "grant_id": stored["grant_id"],
        "kind": "claim",
        "lane_id": "default",
        "expires_at_ms": now + 700,
    }
    assert got["grant_id"].bytes[-1] == before["partition_key"]
    assert (stored["worker_id"], stored["worker_instance_id"]) == ("w", "w-1")
    assert (stored["capabilities"], stored["admission_summary"]) == (["a", "b"], "because of the weather")
    assert stored["issued_at_ms"] == now
    assert execution(db, eid) == {**before, "granted": True, "ready_in": None, "due_at_ms": now + 700}
    assert events(db, eid) == []
    assert violations(db) == []


def test_a_grant_lasts_five_seconds_unless_told_otherwise(db, clock):
    now = clock.freeze()
    assert issue(db, create(db))["expires_at_ms"] == now + 5000


def test_the_same_worker_asking_again_gets_the_same_grant_unchanged(db, clock):
    clock.freeze()
    eid = create(db, required_capabilities=["a"])
    first = issue(db, eid, capabilities=["a"])
    clock.advance(4999)
    again = issue(db, eid, grant_ttl_ms=60_000)  # not asked for capabilities again
    assert again == {**first, "outcome": "already_granted"}
    clock.advance(1)
    fresh = issue(db, eid, capabilities=["a"])
    assert fresh["outcome"] == "granted"
    assert fresh["grant_id"] != first["grant_id"]
    assert len(grants(db)) == 1


@pytest.mark.parametrize(
    "other", [OTHER, {**WORKER, "worker_id": "x"}, {**WORKER, "worker_instance_id": "w-2"}]
)
def test_another_worker_learns_when_the_grant_ends_but_not_its_id(db, clock, other):
    clock.freeze()
    eid = create(db, required_capabilities=["a"])
    first = issue(db, eid, capabilities=["a"], grant_ttl_ms=100)
    with refused("grant_already_exists") as refusal:
        issue(db, eid, **other)  # before its capabilities are looked at
    assert refusal.detail == {
        "kind": "grant_already_exists",
        "execution_id": eid,
        "expires_at_ms": first["expires_at_ms"],
    }
    clock.advance(99)
    with refused("grant_already_exists"):
        issue(db, eid, **other)
    clock.advance(1)
    assert issue(db, eid, capabilities=["a"], **other)["outcome"] == "granted"


def test_the_kind_of_a_grant_tells_how_it_is_redeemed(db, clock):
    clock.freeze()
    resumed = pause(db)
    assert issue(db, resumed["execution_id"])["kind"] == "resume"
    delayed = create(db, delay_ms=50)
    clock.advance(50)
    assert issue(db, delayed)["kind"] == "claim"
    create(db, "later")
    paused = take(db, "later")
    one(db, "ff_delay", handle=paused["handle"], delay_ms=50)
    clock.advance(50)
    assert issue(db, paused["execution_id"])["kind"] == "resume"


def test_the_missing_capabilities_are_named_in_order(db):
    eid = create(db, required_capabilities=["z", "a", "B", "m"])
    with refused("capability_mismatch") as refusal:
        issue(db, eid, capabilities=["m", "q"])
    assert refusal.detail["missing"] == ["B", "a", "z"]
    assert refusal.detail["execution_id"] == eid
    assert grants(db) == []


def test_only_what_is_ready_can_be_granted(db, clock):
    now = clock.freeze()
    active = create(db, "active") and take(db, "active")
    lapsed = create(db, "lapsed") and take(db, "lapsed", lease_ttl_ms=5)
    done = create(db, "done") and take(db, "done")
    one(db, "ff_complete", handle=done["handle"])
    delayed, late = create(db, delay_ms=11), create(db, deadline_at_ms=now + 10)
    clock.advance(10)
    for eid, state, phase in [
        (active["execution_id"], "active", "active"),
        (lapsed["execution_id"], "active", "active"),
        (done["execution_id"], "completed", "terminal"),
        (delayed, "delayed", "runnable"),
        (late, "waiting", "runnable"),
    ]:
        with refused("execution_not_eligible") as refusal:
            issue(db, eid)
        assert (refusal.detail["public_state"], refusal.detail["lifecycle_phase"]) == (state, phase)
        assert refusal.detail["execution_id"] == eid
        assert "lease_id" not in refusal.detail
    clock.advance(1)
    assert issue(db, delayed)["outcome"] == "granted"


@pytest.mark.parametrize(
    ("state", "claimable"), [("active", True), ("draining", True), ("paused", False), ("disabled", False)]
)
def test_a_stopped_lane_grants_nothing(db, state, claimable):
    eid = create(db, delay_ms=1000)
    one(db, "ff_set_lane_state", lane_id="default", state=state)
    with refused("execution_not_eligible" if claimable else "lane_not_claimable") as refusal:
        issue(db, eid)  # the lane is looked at before the execution's own state
    if not claimable:
        assert refusal.detail["lane_id"] == "default"


BAD_CLAIMANT = [
    ({"worker_id": None}, "invalid_input"),
    ({"worker_id": ""}, "invalid_input"),
    ({"worker_id": "x" * 257}, "invalid_input"),
    ({"worker_id": "a\nb"}, "invalid_input"),
    ({"worker_instance_id": None}, "invalid_input"),
    ({"worker_instance_id": "\x7f"}, "invalid_input"),
]
BAD_ID = [
    ({"execution_id": None}, "invalid_input"),
    ({"execution_id": "x"}, "invalid_execution_id"),
    ({"execution_id": f"{{fp:256}}:{UNKNOWN_ID}"}, "invalid_execution_id"),
    ({"execution_id": UNKNOWN}, "execution_not_found"),
    ({"execution_id": f"{{fp:8}}:{UNKNOWN_ID}"}, "execution_not_found"),
]
BAD_TTL = [None, 0, -1, 86_400_001, 2**63 - 1]


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        *BAD_ID,
        *BAD_CLAIMANT,
        ({"capabilities": None}, "invalid_input"),
        ({"capabilities": ["a b"]}, "invalid_capabilities"),
        ({"capabilities": [None]}, "invalid_capabilities"),
        *(({"grant_ttl_ms": ttl}, "invalid_input") for ttl in BAD_TTL),
        ({"admission_summary": "a\nb"}, "invalid_input"),
    ],
)
def test_bad_input_gets_no_grant(db, args, kind):
    eid = create(db)
    for function in ("ff_issue_claim_grant", "ff_issue_reclaim_grant"):
        if function == "ff_issue_reclaim_grant" and "admission_summary" in args:
            continue
        with refused(kind) as refusal:
            rows(db, function, **{"execution_id": eid, **WORKER, **args})
        if kind == "invalid_input":
            assert refusal.detail["arg"] == f"p_{next(iter(args))}"
    assert grants(db) == []


@pytest.mark.parametrize("ttl", [1, 86_400_000])
def test_the_shortest_and_the_longest_grant(db, clock, ttl):
    now = clock.freeze()
    assert issue(db, create(db), grant_ttl_ms=ttl)["expires_at_ms"] == now + ttl


# ff_claim_for_worker


def test_the_scheduler_is_granted_what_a_claim_would_have_taken(db, clock):
    now = clock.freeze()
    create(db, priority=1)
    wanted = create(db, priority=5)
    create(db, priority=9, required_capabilities=["gpu"])
    got = one(db, "ff_claim_for_worker", lane_id="default", **WORKER)
    (stored,) = grants(db)
    assert got == {
        "grant_id": stored["grant_id"],
        "kind": "claim",
        "execution_id": wanted,
        "lane_id": "default",
        "expires_at_ms": now + 5000,
    }
    assert execution(db, wanted)["public_state"] == "waiting"
    assert events(db, wanted) == []
    one(db, "ff_claim_execution", execution_id=wanted, grant_id=got["grant_id"], **WORKER)


def test_each_call_of_the_scheduler_grants_something_else_and_then_nothing(db):
    created = {create(db) for _ in range(4)}
    for_worker = {"lane_id": "default", **WORKER}
    got = {one(db, "ff_claim_for_worker", **for_worker)["execution_id"] for _ in created}
    assert got == created
    assert rows(db, "ff_claim_for_worker", **for_worker) == []
    assert claim(db) is None


def test_the_scheduler_grants_every_kind_of_work(db, clock):
    clock.freeze()
    lapsed = lapse(db, clock, priority=1)["execution_id"]
    pause(db, priority=3)
    create(db, priority=5, delay_ms=10)
    clock.advance(10)
    got = [one(db, "ff_claim_for_worker", lane_id="default", **WORKER) for _ in range(3)]
    assert [row["kind"] for row in got] == ["claim", "resume", "reclaim"]
    assert got[2]["execution_id"] == lapsed
    stored = execution(db, lapsed)
    assert stored["ownership_state"] == "lease_expired_reclaimable"
    assert events(db, lapsed)[-1] == "lease/expired:ttl"
    assert violations(db) == []
    assert [
        one(db, "ff_claim_from_grant", grant_id=row["grant_id"], **WORKER)["handle_kind"] for row in got
    ] == [
        "fresh",
        "resumed",
        "reclaimed",
    ]
    assert grants(db) == []
    assert violations(db) == []


def test_the_scheduler_reserves_an_ended_delay_without_touching_it(db, clock):
    clock.freeze()
    eid = create(db, delay_ms=100)
    clock.advance(100)
    before = execution(db, eid)
    grant = one(db, "ff_claim_for_worker", lane_id="default", **WORKER)
    assert (grant["kind"], execution(db, eid)["public_state"]) == ("claim", "delayed")
    assert execution(db, eid)["last_transition_at_ms"] == before["last_transition_at_ms"]
    assert one(db, "ff_claim_from_grant", grant_id=grant["grant_id"], **WORKER)["execution_id"] == eid
    assert violations(db) == []


def test_the_scheduler_asks_for_capabilities_and_namespace(db):
    create(db, namespace="a", required_capabilities=["gpu"])
    for_worker = {"lane_id": "default", **WORKER}
    assert rows(db, "ff_claim_for_worker", **for_worker, namespace="a") == []
    assert rows(db, "ff_claim_for_worker", **for_worker, namespace="b", capabilities=["gpu"]) == []
    assert rows(db, "ff_claim_for_worker", **for_worker, namespace="a", capabilities=["gpu"])


@pytest.mark.parametrize("state", ["paused", "disabled", None])
def test_the_scheduler_gets_nothing_from_a_stopped_or_unknown_lane(db, state):
    if state:
        create(db)
        one(db, "ff_set_lane_state", lane_id="default", state=state)
    assert rows(db, "ff_claim_for_worker", lane_id="default", **WORKER) == []
    assert grants(db) == []


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"lane_id": None}, "invalid_input"),
        ({"lane_id": "ä"}, "invalid_lane_id"),
        *BAD_CLAIMANT,
        ({"capabilities": None}, "invalid_input"),
        ({"capabilities": ["a,b"]}, "invalid_capabilities"),
        *(({"grant_ttl_ms": ttl}, "invalid_input") for ttl in BAD_TTL),
        ({"namespace": ""}, "invalid_input"),
    ],
)
def test_the_scheduler_is_refused_bad_input(db, args, kind):
    create(db)
    with refused(kind):
        rows(db, "ff_claim_for_worker", **{"lane_id": "default", **WORKER, **args})
    assert grants(db) == []


# Redemption


def test_a_grant_becomes_a_lease_and_is_gone(db, clock):
    now = clock.freeze()
    eid = create(db, payload=b"p", tags={"a.b": "c"}, policy={"timeout_policy": {"attempt_timeout_ms": 900}})
    grant = issue(db, eid)["grant_id"]
    row = one(db, "ff_claim_execution", execution_id=eid, grant_id=grant, **WORKER, lease_ttl_ms=1000)
    assert (row["handle_kind"], row["attempt_type"]) == ("fresh", "initial")
    assert (row["attempt_index"], row["lease_epoch"]) == (0, 1)
    assert (row["payload"], row["tags"]) == (b"p", {"a.b": "c"})
    assert row["lease_expires_at_ms"] == row["attempt_timeout_at_ms"] == now + 900
    stored = execution(db, eid)
    assert (stored["public_state"], stored["worker_instance_id"]) == ("active", "w-1")
    assert grants(db) == []
    assert events(db, eid) == ["lease/acquired"]
    assert one(db, "ff_complete", handle=row["handle"])["outcome"] == "completed"
    assert violations(db) == []


def test_a_restarted_process_of_the_same_worker_may_redeem(db):
    eid = create(db)
    grant = issue(db, eid)["grant_id"]
    row = {"execution_id": eid, "grant_id": grant, "worker_id": "w", "worker_instance_id": "restarted"}
    one(db, "ff_claim_execution", **row)
    assert execution(db, eid)["worker_instance_id"] == "restarted"


def test_a_second_use_of_a_grant_is_refused(db):
    eid = create(db)
    redeem = {"execution_id": eid, "grant_id": issue(db, eid)["grant_id"], **WORKER}
    one(db, "ff_claim_execution", **redeem)
    with refused("execution_not_leaseable") as refusal:
        one(db, "ff_claim_execution", **redeem)
    assert refusal.detail["lifecycle_phase"] == "active"
    assert "lease_id" not in refusal.detail
    with refused("invalid_claim_grant"):
        one(db, "ff_claim_from_grant", grant_id=redeem["grant_id"], **WORKER)


def test_retries_and_replays_are_redeemed_as_what_they_are(db):
    eid = create(db, policy={"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}})
    one(db, "ff_fail", handle=take(db)["handle"])
    retry = one(db, "ff_claim_execution", execution_id=eid, grant_id=issue(db, eid)["grant_id"], **WORKER)
    assert (retry["handle_kind"], retry["attempt_type"], retry["attempt_index"]) == ("fresh", "retry", 1)
    one(db, "ff_complete", handle=retry["handle"])
    one(db, "ff_replay_execution", execution_id=eid)
    replay = one(db, "ff_claim_execution", execution_id=eid, grant_id=issue(db, eid)["grant_id"], **WORKER)
    assert (replay["attempt_type"], replay["attempt_index"], replay["lease_epoch"]) == ("replay", 2, 3)
    assert violations(db) == []


def test_a_resumed_claim_goes_on_with_the_same_attempt_and_the_rest_of_its_time(db, clock):
    clock.freeze()
    eid = create(db, policy={"timeout_policy": {"attempt_timeout_ms": 1000}})
    first = take(db)
    clock.advance(300)
    one(db, "ff_delay", handle=first["handle"], delay_ms=5000)
    clock.advance(5000)
    grant = issue(db, eid)
    second = one(
        db,
        "ff_claim_resumed_execution",
        execution_id=eid,
        grant_id=grant["grant_id"],
        **OTHER | {"worker_id": "w"},
    )
    assert (second["handle_kind"], second["attempt_type"]) == ("resumed", "initial")
    assert (second["attempt_id"], second["attempt_index"]) == (first["attempt_id"], 0)
    assert (second["lease_epoch"], second["lease_id"] != first["lease_id"]) == (2, True)
    assert second["attempt_timeout_at_ms"] == second["lease_expires_at_ms"] == clock.now() + 700
    (attempt,) = rows(db, "ff_list_attempts", execution_id=eid)
    assert (attempt["state"], attempt["resumed_at_ms"]) == ("started", clock.now())
    assert (attempt["worker_id"], attempt["worker_instance_id"]) == ("w", "x-1")
    assert grants(db) == []
    assert violations(db) == []


def test_a_resume_grant_finds_its_execution(db):
    paused = pause(db)
    grant = issue(db, paused["execution_id"])["grant_id"]
    row = one(db, "ff_claim_from_resume_grant", grant_id=grant, **WORKER)
    assert (row["execution_id"], row["attempt_id"]) == (paused["execution_id"], paused["attempt_id"])
    with refused("invalid_claim_grant"):
        one(db, "ff_claim_from_resume_grant", grant_id=grant, **WORKER)


@pytest.mark.parametrize("kind", ["claim", "resume"])
def test_any_grant_is_redeemed_by_its_id_alone(db, kind):
    eid = create(db) if kind == "claim" else pause(db)["execution_id"]
    row = one(db, "ff_claim_from_grant", grant_id=issue(db, eid)["grant_id"], **WORKER)
    assert (row["outcome"], row["reclaim_count"], row["execution_id"]) == ("claimed", 0, eid)
    assert row["handle_kind"] == {"claim": "fresh", "resume": "resumed"}[kind]
    assert one(db, "ff_renew", handle=row["handle"])["lease_epoch"] == row["lease_epoch"]


def test_each_way_to_redeem_takes_its_own_kind(db, clock):
    clock.freeze()
    waiting, paused = create(db, "a"), pause(db, "b")["execution_id"]
    lapsed = lapse(db, clock, "c")["execution_id"]
    given = {eid: issue(db, eid)["grant_id"] for eid in (waiting, paused)}
    given[lapsed] = one(db, "ff_issue_reclaim_grant", execution_id=lapsed, **WORKER)["grant_id"]
    for function, eid, kind in [
        ("ff_claim_execution", paused, "use_claim_resumed_execution"),
        ("ff_claim_execution", lapsed, "execution_not_leaseable"),
        ("ff_claim_resumed_execution", waiting, "not_a_resumed_execution"),
        ("ff_claim_resumed_execution", lapsed, "execution_not_leaseable"),
    ]:
        with refused(kind) as refusal:
            one(db, function, execution_id=eid, grant_id=given[eid], **WORKER)
        assert refusal.detail["execution_id"] == eid
        assert str(given[eid]) not in str(refusal.error.diag.message_detail)
    for eid in (waiting, lapsed):
        with refused("invalid_claim_grant"):
            one(db, "ff_claim_from_resume_grant", grant_id=given[eid], **WORKER)
    assert len(grants(db)) == 3


def test_a_grant_that_is_not_yours_says_nothing_about_itself(db, clock):
    clock.freeze()
    plain, paused, bare = create(db, "q"), pause(db)["execution_id"], create(db, "q")
    for function, eid in [("ff_claim_execution", plain), ("ff_claim_resumed_execution", paused)]:
        grant = issue(db, eid)["grant_id"]
        for args in ({"grant_id": UNKNOWN_ID}, OTHER):
            with refused("invalid_claim_grant") as refusal:
                one(db, function, **{"execution_id": eid, "grant_id": grant, **WORKER, **args})
            assert refusal.detail == {"kind": "invalid_claim_grant", "execution_id": eid}
        with refused("invalid_claim_grant"):
            one(db, "ff_claim_from_grant", grant_id=grant, **OTHER)
    with refused("invalid_claim_grant"):
        one(db, "ff_claim_execution", execution_id=bare, grant_id=UNKNOWN_ID, **WORKER)
    for function in ("ff_claim_from_grant", "ff_claim_from_resume_grant"):
        with refused("invalid_claim_grant"):
            one(db, function, grant_id=UNKNOWN_ID, **WORKER)


@pytest.mark.parametrize("kind", ["claim", "resume"])
def test_a_grant_ends_at_its_last_millisecond(db, clock, kind):
    clock.freeze()
    eid = create(db) if kind == "claim" else pause(db)["execution_id"]
    grant = issue(db, eid, grant_ttl_ms=100)
    clock.advance(100)
    named = {"claim": "ff_claim_execution", "resume": "ff_claim_resumed_execution"}[kind]
    for function, args in [(named, {"execution_id": eid}), ("ff_claim_from_grant", {})]:
        with refused("claim_grant_expired") as refusal:
            one(db, function, grant_id=grant["grant_id"], **WORKER, **args)
        assert refusal.detail["expires_at_ms"] == grant["expires_at_ms"]
        assert str(grant["grant_id"]) not in str(refusal.error.diag.message_detail)
        with refused("invalid_claim_grant"):  # whose it is comes before whether it lives
            one(db, function, grant_id=grant["grant_id"], **OTHER, **args)
    clock.advance(-1)
    assert one(db, "ff_claim_from_grant", grant_id=grant["grant_id"], **WORKER)["outcome"] == "claimed"


def test_the_checks_of_a_redemption_come_in_their_order(db, clock):
    """Each step fixes the reason of the previous rejection."""
    now = clock.freeze()
    redeem = {"grant_id": UNKNOWN_ID, **OTHER}
    eid = create(db, deadline_at_ms=now + 10_000)
    row = take(db)
    one(db, "ff_set_lane_state", lane_id="default", state="paused")
    with refused("execution_not_found"):
        one(db, "ff_claim_execution", execution_id=UNKNOWN, **redeem)
    with refused("execution_not_leaseable"):
        one(db, "ff_claim_execution", execution_id=eid, **redeem)
    one(db, "ff_delay", handle=row["handle"], delay_ms=100)
    with refused("use_claim_resumed_execution"):
        one(db, "ff_claim_execution", execution_id=eid, **redeem)
    with refused("execution_not_eligible"):
        one(db, "ff_claim_resumed_execution", execution_id=eid, **redeem)
    clock.advance(99)
    with refused("execution_not_eligible"):
        one(db, "ff_claim_resumed_execution", execution_id=eid, **redeem)
    clock.advance(1)
    with refused("lane_not_claimable"):
        one(db, "ff_claim_resumed_execution", execution_id=eid, **redeem)
    one(db, "ff_set_lane_state", lane_id="default", state="active")
    with refused("invalid_claim_grant"):
        one(db, "ff_claim_resumed_execution", execution_id=eid, **redeem)
    grant = issue(db, eid, grant_ttl_ms=1)["grant_id"]
    clock.advance(1)
    with refused("claim_grant_expired"):
        one(db, "ff_claim_resumed_execution", execution_id=eid, grant_id=grant, **WORKER)
    grant = issue(db, eid, grant_ttl_ms=86_400_000)["grant_id"]
    clock.set(now + 10_000)
    with refused("execution_not_eligible"):
        one(db, "ff_claim_resumed_execution", execution_id=eid, grant_id=grant, **WORKER)
    clock.advance(-1)
    one(db, "ff_claim_resumed_execution", execution_id=eid, grant_id=grant, **WORKER)


@pytest.mark.parametrize("state", ["paused", "disabled"])
def test_a_lane_that_stopped_after_the_grant_redeems_nothing(db, state):
    eid = create(db)
    grant = issue(db, eid)["grant_id"]
    one(db, "ff_set_lane_state", lane_id="default", state=state)
    for function, args in [("ff_claim_execution", {"execution_id": eid}), ("ff_claim_from_grant", {})]:
        with refused("lane_not_claimable"):
            one(db, function, grant_id=grant, **WORKER, **args)
    one(db, "ff_set_lane_state", lane_id="default", state="draining")
    one(db, "ff_claim_execution", execution_id=eid, grant_id=grant, **WORKER)


REDEMPTIONS = [
    "ff_claim_execution",
    "ff_claim_resumed_execution",
    "ff_reclaim_execution",
    "ff_claim_from_grant",
    "ff_claim_from_resume_grant",
]


@pytest.mark.parametrize("function", REDEMPTIONS)
@pytest.mark.parametrize(
    ("args", "kind"),
    [
        *BAD_ID,
        *BAD_CLAIMANT,
        ({"grant_id": None}, "invalid_input"),
        *(({"lease_ttl_ms": ttl}, "invalid_input") for ttl in BAD_TTL),
    ],
)
def test_bad_input_redeems_nothing(db, function, args, kind):
    given = {"execution_id": create(db), "grant_id": UNKNOWN_ID, **WORKER, **args}
    if function == "ff_claim_resumed_execution" and "grant_id" in args:
        return  # allowed: see below
    if "from" in function:
        del given["execution_id"]
        if "execution_id" in args:
            return
    with refused(kind) as refusal:
        rows(db, function, **given)
    if kind == "invalid_input":
        assert refusal.detail["arg"] == f"p_{next(iter(args))}"


# ff_claim_resumed_execution without a grant


def resume(db, eid, grant_id=None, **args):
    return one(db, "ff_claim_resumed_execution", execution_id=eid, grant_id=grant_id, **{**WORKER, **args})


def test_a_paused_attempt_is_resumed_without_a_grant(db):
    paused = pause(db)
    row = resume(db, paused["execution_id"])
    assert (row["handle_kind"], row["attempt_index"]) == ("resumed", 0)
    assert (row["attempt_id"], row["lease_epoch"]) == (paused["attempt_id"], 2)
    assert one(db, "ff_complete", handle=row["handle"])["public_state"] == "completed"
    assert violations(db) == []


def test_a_live_grant_of_another_worker_keeps_a_paused_attempt_from_being_resumed(db, clock):
    clock.freeze()
    eid = pause(db)["execution_id"]
    grant = issue(db, eid, **OTHER)
    with refused("grant_already_exists") as refusal:
        resume(db, eid)
    assert refusal.detail["expires_at_ms"] == grant["expires_at_ms"]
    assert str(grant["grant_id"]) not in str(refusal.error.diag.message_detail)
    clock.set(grant["expires_at_ms"])
    resume(db, eid)
    assert grants(db) == []
    assert violations(db) == []


@pytest.mark.parametrize("instance", ["w-1", "w-2"])
def test_a_worker_that_resumes_without_its_own_grant_uses_it_up(db, instance):
    eid = pause(db)["execution_id"]
    grant = issue(db, eid)["grant_id"]
    resume(db, eid, worker_instance_id=instance)
    assert grants(db) == []
    with refused("invalid_claim_grant"):
        one(db, "ff_claim_from_grant", grant_id=grant, **WORKER)


def test_a_resume_without_a_grant_makes_the_checks_that_a_grant_would_have_made(db, clock):
    now = clock.freeze()
    row = create(db, deadline_at_ms=now + 10_000) and take(db)
    eid = row["execution_id"]
    one(db, "ff_delay", handle=row["handle"], delay_ms=100)
    with refused("execution_not_eligible"):
        resume(db, eid)
    clock.advance(100)
    one(db, "ff_set_lane_state", lane_id="default", state="paused")
    with refused("lane_not_claimable"):
        resume(db, eid)
    one(db, "ff_set_lane_state", lane_id="default", state="active")
    clock.set(now + 10_000)
    with refused("execution_not_eligible"):
        resume(db, eid)
    with refused("execution_not_found"):
        resume(db, UNKNOWN)


@pytest.mark.parametrize("grant_id", [None, UNKNOWN_ID])
def test_what_has_no_paused_attempt_is_never_resumed_whatever_its_state(db, clock, grant_id):
    clock.freeze()
    lapsed = lapse(db, clock)["execution_id"]
    waiting, delayed, ended = create(db), create(db, delay_ms=10), create(db)
    one(db, "ff_cancel_execution", execution_id=ended)
    active = (create(db, "other") and take(db, "other"))["execution_id"]
    for eid in (waiting, delayed, ended, active, lapsed):
        with refused("not_a_resumed_execution"):
            resume(db, eid, grant_id)
    seed(db)
    row = create(db, "third") and take(db, "third")
    rows(db, "ff_suspend", handle=row["handle"], condition={"kind": "operator_only"})
    with refused("execution_not_leaseable"):
        resume(db, row["execution_id"], grant_id)


def test_an_ended_execution_leaves_no_grant_behind(db):
    eid = create(db)
    grant = issue(db, eid)["grant_id"]
    one(db, "ff_cancel_execution", execution_id=eid)
    assert grants(db) == []
    with refused("execution_not_leaseable") as refusal:
        one(db, "ff_claim_execution", execution_id=eid, grant_id=grant, **WORKER)
    assert refusal.detail["lifecycle_phase"] == "terminal"
    assert violations(db) == []


def test_an_expired_grant_hides_nothing_from_a_plain_claim(db, clock):
    clock.freeze()
    eid = create(db)
    grant = issue(db, eid, grant_ttl_ms=10)["grant_id"]
    clock.advance(9)
    assert claim(db) is None
    clock.advance(1)
    assert take(db)["execution_id"] == eid
    assert grants(db) == []
    with refused("execution_not_leaseable"):
        one(db, "ff_claim_execution", execution_id=eid, grant_id=grant, **WORKER)


def test_a_grant_that_no_longer_fits_its_execution_is_replaced(db, clock):
    """The crashed work that it was for is over: an operator put it back in the queue."""
    clock.freeze()
    policy = {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}
    eid = lapse(db, clock, policy=policy)["execution_id"]
    old = one(db, "ff_issue_reclaim_grant", execution_id=eid, **WORKER)["grant_id"]
    one(db, "ff_fail_execution", execution_id=eid, source="operator_override")
    grant = issue(db, eid)
    assert (grant["outcome"], grant["kind"], grant["grant_id"] != old) == ("granted", "claim", True)
    assert one(db, "ff_claim_from_grant", grant_id=grant["grant_id"], **WORKER)["attempt_type"] == "retry"


# ff_issue_grant_and_claim


def test_an_operator_takes_an_execution_whatever_its_lane_and_capabilities(db, clock):
    now = clock.freeze()
    eid = create(db, required_capabilities=["gpu"])
    one(db, "ff_set_lane_state", lane_id="default", state="disabled")
    row = one(db, "ff_issue_grant_and_claim", execution_id=eid)
    assert (row["execution_id"], row["handle_kind"], row["attempt_type"]) == (eid, "fresh", "initial")
    assert row["lease_expires_at_ms"] == now + 30_000
    stored = execution(db, eid)
    assert (stored["worker_id"], stored["worker_instance_id"]) == ("operator", "operator")
    assert grants(db) == []
    assert events(db, eid) == ["lease/acquired"]
    assert violations(db) == []


def test_an_operator_goes_on_with_a_paused_attempt(db):
    paused = pause(db)
    row = one(db, "ff_issue_grant_and_claim", execution_id=paused["execution_id"], **WORKER)
    assert (row["handle_kind"], row["attempt_id"]) == ("resumed", paused["attempt_id"])


def test_an_operator_uses_up_its_own_grant_but_not_that_of_another(db, clock):
    clock.freeze()
    eid = create(db)
    grant = issue(db, eid, **OTHER)
    with refused("grant_already_exists") as refusal:
        one(db, "ff_issue_grant_and_claim", execution_id=eid, **WORKER)
    assert refusal.detail["expires_at_ms"] == grant["expires_at_ms"]
    assert str(grant["grant_id"]) not in str(refusal.error.diag.message_detail)
    clock.set(grant["expires_at_ms"])
    issue(db, eid)
    one(db, "ff_issue_grant_and_claim", execution_id=eid, **WORKER)
    assert grants(db) == []


def test_an_operator_takes_neither_held_nor_crashed_nor_ended_nor_delayed_work(db, clock):
    now = clock.freeze()
    eid = create(db, deadline_at_ms=now + 5000)
    row = take(db, lease_ttl_ms=1000)
    with refused("lease_conflict") as refusal:
        one(db, "ff_issue_grant_and_claim", execution_id=eid)
    assert str(row["lease_id"]) not in str(refusal.error.diag.message_detail)
    assert refusal.detail["execution_id"] == eid
    clock.advance(999)
    with refused("lease_conflict"):
        one(db, "ff_issue_grant_and_claim", execution_id=eid)
    clock.advance(1)
    with refused("execution_not_leaseable") as refusal:
        one(db, "ff_issue_grant_and_claim", execution_id=eid)
    assert refusal.detail["lifecycle_phase"] == "active"
    one(db, "ff_delay_execution", execution_id=eid, source="operator_override", delay_ms=1000)
    clock.advance(999)
    with refused("execution_not_eligible"):
        one(db, "ff_issue_grant_and_claim", execution_id=eid)
    clock.set(now + 5000)
    with refused("execution_not_eligible") as refusal:
        one(db, "ff_issue_grant_and_claim", execution_id=eid)
    assert refusal.detail["deadline_at_ms"] == now + 5000
    one(db, "ff_expire_execution", execution_id=eid, phase="execution_deadline")
    with refused("execution_not_leaseable") as refusal:
        one(db, "ff_issue_grant_and_claim", execution_id=eid)
    assert refusal.detail["lifecycle_phase"] == "terminal"
    assert violations(db) == []


@pytest.mark.parametrize(
    ("args", "kind"),
    [*BAD_ID, *BAD_CLAIMANT, *(({"lease_ttl_ms": ttl}, "invalid_input") for ttl in BAD_TTL)],
)
def test_an_operator_is_refused_bad_input(db, args, kind):
    eid = create(db)
    with refused(kind):
        rows(db, "ff_issue_grant_and_claim", **{"execution_id": eid, **args})
    assert execution(db, eid)["public_state"] == "waiting"
