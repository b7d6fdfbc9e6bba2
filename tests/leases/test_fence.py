"""The fence: the same checks in the same order in every function of a worker."""

import uuid

import pytest

from tests.executions.states import POLICY, RUNNABLE, TERMINAL, UNKNOWN, everything, fence, reach
from tests.sql import create, execution, one, refused, take

SHORT = {
    "ff_renew": {},
    "ff_progress": {"percent": 1},
    "ff_complete": {"result": b"1"},
    "ff_fail": {},
    "ff_delay": {"delay_ms": 0},
    "ff_cancel": {},
}
TYPED = {
    "ff_renew_lease": {},
    "ff_update_progress": {"percent": 1},
    "ff_complete_execution": {},
    "ff_fail_execution": {},
    "ff_delay_execution": {"delay_ms": 0},
    "ff_cancel_execution": {"source": "lease_holder"},
}
HANDLE = "ff1.018f3a2e-7b6c-7d1e-9f00-aabbccddee07." + ".".join([str(uuid.UUID(int=7))] * 2)


def call(db, name, row, **change):
    """A verb with the fence of a claim, short or typed."""
    if name in SHORT:
        given = one(db, "ff_handle_encode", **{**fence(row), **change})
        return one(db, name, **given, **SHORT[name])
    given = {**fence(row), **change}
    if name == "ff_cancel_execution":
        del given["attempt_index"]
    return one(db, name, **given, **TYPED[name])


every_verb = pytest.mark.parametrize("name", [*SHORT, *TYPED])
short_verbs = pytest.mark.parametrize("name", SHORT)
typed_verbs = pytest.mark.parametrize("name", TYPED)


@short_verbs
def test_what_is_not_a_handle_is_refused(db, name):
    for handle in ("", "x", "ff1", HANDLE, f"{HANDLE}.7.0", f"{HANDLE}.256.0.1", f"{HANDLE}.7.0.-1"):
        with refused("invalid_handle"):
            one(db, name, handle=handle, **SHORT[name])


@short_verbs
def test_a_letter_that_is_no_digit_makes_no_handle(db, name):
    create(db)
    handle = take(db)["handle"]
    for at in (4, 11, 12, 13, 39, 40, 41, 80, 115, len(handle) - 1):
        for letter in "-gé":
            if handle[at] != letter:
                with refused("invalid_handle"):
                    one(db, name, handle=handle[:at] + letter + handle[at + 1 :], **SHORT[name])


@short_verbs
def test_a_handle_is_required(db, name):
    with refused("invalid_input") as refusal:
        one(db, name, handle=None, **SHORT[name])
    assert refusal.detail["arg"] == "p_handle"


@typed_verbs
def test_what_is_not_an_execution_id_is_refused_before_the_fence_is_looked_at(db, name):
    for eid in ("", "x", UNKNOWN[:-1], UNKNOWN.replace("7}", "256}"), UNKNOWN.replace("7}", "07}")):
        with refused("invalid_execution_id"):
            one(db, name, execution_id=eid, **TYPED[name])
    with refused("invalid_input") as refusal:
        one(db, name, execution_id=None, **TYPED[name])
    assert refusal.detail["arg"] == "p_execution_id"


@typed_verbs
def test_the_fence_is_required_whole(db, clock, name):
    eid, row = reach(db, clock, "leased")
    before = everything(db)
    with refused("fence_required") as refusal:
        one(db, name, execution_id=eid, **TYPED[name])
    assert refusal.detail["execution_id"] == eid
    for given in ({"lease_id"}, {"lease_epoch"}, {"attempt_id"}, {"lease_id", "lease_epoch"}):
        with refused("partial_fence"):
            one(db, name, execution_id=eid, **{k: row[k] for k in given}, **TYPED[name])
    assert everything(db) == before


@pytest.mark.parametrize("name", [n for n in TYPED if n != "ff_cancel_execution"])
def test_a_missing_fence_is_noticed_before_the_execution_is_looked_for(db, name):
    with refused("fence_required"):
        one(db, name, execution_id=UNKNOWN, **TYPED[name])
    with refused("partial_fence"):
        one(db, name, execution_id=UNKNOWN, lease_epoch=1, **TYPED[name])


@every_verb
def test_an_unknown_execution_is_not_found_nor_one_under_a_wrong_partition(db, clock, name):
    eid, row = reach(db, clock, "leased")
    number = execution(db, eid)["partition_key"]
    wrong = eid.replace(f":{number}}}", f":{(number + 1) % 256}}}")
    for unknown in (UNKNOWN, wrong):
        with refused("execution_not_found") as refusal:
            call(db, name, row, execution_id=unknown)
        assert refusal.detail["execution_id"] == unknown


@pytest.mark.parametrize("state", [*RUNNABLE, *TERMINAL])
def test_what_does_not_run_is_not_active(db, clock, state):
    clock.freeze()
    eid, row = reach(db, clock, state)
    never = {"execution_id": eid, "attempt_index": 0, "lease_id": uuid.uuid4(), "lease_epoch": 1}
    never["attempt_id"] = uuid.uuid4()
    stored = execution(db, eid)
    before = everything(db)
    for name in [*SHORT, *TYPED]:
        if name == "ff_cancel_execution" and state in TERMINAL:
            continue  # has an answer of its own
        for given in filter(None, (never, row and {**row, "lease_epoch": 99})):
            with refused("execution_not_active") as refusal:
                call(db, name, given)
            assert refusal.detail == {
                "kind": "execution_not_active",
                "execution_id": eid,
                "lifecycle_phase": stored["lifecycle_phase"],
                "terminal_outcome": stored["terminal_outcome"],
                "public_state": stored["public_state"],
                "lease_epoch": stored["lease_epoch"],
                "attempt_index": stored["current_attempt_index"],
            }
    assert everything(db) == before


@every_verb
@pytest.mark.parametrize("state", ["leased", "lapsed lease", "expired lease", "revoked lease"])
def test_every_part_of_the_fence_is_compared_before_the_lease_is_checked(db, clock, name, state):
    clock.freeze()
    eid, row = reach(db, clock, state)
    before = everything(db)
    changes = [
        {"lease_id": uuid.uuid4()},
        {"lease_epoch": 0},
        {"lease_epoch": 2},
        {"attempt_id": uuid.uuid4()},
        {"attempt_index": 1},
    ]
    for change in changes[: 4 if name == "ff_cancel_execution" else 5]:
        with refused("stale_lease") as refusal:
            call(db, name, row, **change)
        assert refusal.detail == {
            "kind": "stale_lease",
            "execution_id": eid,
            "lease_epoch": 1,
            "attempt_index": 0,
        }
        assert str(row["lease_id"]) not in str(refusal.error)
    assert everything(db) == before


@every_verb
def test_a_former_holder_is_stale(db, clock, name):
    clock.freeze()
    _, row = reach(db, clock, "lapsed lease")
    take(db, worker="next")
    with refused("stale_lease") as refusal:
        call(db, name, row)
    assert (refusal.detail["lease_epoch"], refusal.detail["attempt_index"]) == (2, 1)


@every_verb
def test_a_revoked_lease_is_revoked_even_after_its_time(db, clock, name):
    clock.freeze()
    create(db)
    row = take(db)
    one(db, "ff_revoke_lease", execution_id=row["execution_id"], reason="maintenance")
    for advance in (0, 30_000):
        clock.advance(advance)
        with refused("lease_revoked") as refusal:
            call(db, name, row)
        assert refusal.detail["reason"] == "maintenance"


@every_verb
@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    ("args", "ttl", "lasts", "reason"),
    [
        ({}, 100, 100, "ttl"),
        ({"policy": {"timeout_policy": {"attempt_timeout_ms": 70}}}, 100, 70, "attempt_timeout"),
        ({"policy": {"timeout_policy": {"execution_deadline_ms": 60}}}, 100, 60, "execution_deadline"),
    ],
)
def test_a_lease_is_over_in_the_millisecond_of_its_end(db, clock, name, marked, args, ttl, lasts, reason):
    clock.freeze()
    eid = create(db, **args)
    row = take(db, lease_ttl_ms=ttl)
    clock.advance(lasts)
    if marked:
        assert one(db, "ff_mark_lease_expired_if_due", execution_id=eid)["outcome"] == "marked_expired"
    with refused("lease_expired") as refusal:
        call(db, name, row)
    assert refusal.detail["reason"] == reason
    assert refusal.detail["execution_id"] == eid


@every_verb
def test_a_lease_is_good_in_the_millisecond_before_its_end(db, clock, name):
    clock.freeze()
    create(db, policy=POLICY)
    row = take(db, lease_ttl_ms=100)
    clock.advance(99)
    call(db, name, row)


@typed_verbs
def test_the_attempt_index_may_be_left_out(db, clock, name):
    _, row = reach(db, clock, "leased")
    call(db, name, row, attempt_index=None)
