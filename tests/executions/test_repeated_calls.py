"""A worker that did not get the answer repeats the call, and gets the same answer."""

import uuid

import pytest

from tests.executions.states import POLICY, everything, fence
from tests.sql import create, one, refused, take, violations

# name -> short verb, typed verb, arguments, other arguments
CALLS = {
    "complete": ("ff_complete", "ff_complete_execution", {"result": b"1"}, {"result": b"2"}),
    "fail, with a retry": (
        "ff_fail",
        "ff_fail_execution",
        {"reason": "a"},
        {"reason": "b", "classification": "permanent"},
    ),
    "fail, the last time": (
        "ff_fail",
        "ff_fail_execution",
        {"classification": "permanent"},
        {"classification": "transient"},
    ),
    "delay": ("ff_delay", "ff_delay_execution", {"delay_ms": 1000}, {"delay_until_ms": 0}),
    "delay, already over": ("ff_delay", "ff_delay_execution", {"delay_ms": 0}, {"delay_ms": 9000}),
    "cancel": ("ff_cancel", None, {"reason": "a"}, {"reason": "b"}),
}
ENDS = ("complete", "fail, the last time", "cancel")
every_call = pytest.mark.parametrize("call", CALLS)


def first(db, call):
    """An execution whose holder has made that call: its claim and the answer."""
    create(db, policy=POLICY)
    row = take(db)
    verb, _, args, _ = CALLS[call]
    return row, one(db, verb, handle=row["handle"], **args)


def assert_repeats(db, row, answer, call):
    """The call is answered as before, and nothing is written, whatever its other arguments say."""
    short, typed, args, others = CALLS[call]
    before = everything(db)
    assert answer["replayed"] is False
    again = {**answer, "replayed": True}
    for given in (args, others):
        assert one(db, short, handle=row["handle"], **given) == again
        if typed:
            assert one(db, typed, **fence(row), **given) == again
            assert one(db, typed, **{**fence(row), "attempt_index": None}, **given) == again
    assert everything(db) == before


@every_call
def test_the_same_call_again_answers_as_the_first_and_writes_nothing(db, clock, call):
    clock.freeze()
    row, answer = first(db, call)
    assert_repeats(db, row, answer, call)
    clock.advance(10**9)
    assert_repeats(db, row, answer, call)
    assert violations(db) == []


@pytest.mark.parametrize("call", ["fail, with a retry", "delay", "delay, already over"])
def test_it_is_answered_while_the_next_lease_is_held_and_after_that_one_ended(db, clock, call):
    clock.freeze()
    row, answer = first(db, call)
    clock.advance(1000)
    following = take(db, worker="next")
    assert_repeats(db, row, answer, call)
    if call == "fail, with a retry":
        one(db, "ff_complete", handle=following["handle"])
        assert_repeats(db, row, answer, call)
    assert violations(db) == []


@pytest.mark.parametrize("call", ENDS)
def test_it_is_answered_after_the_execution_was_replayed_and_ended_again(db, clock, call):
    clock.freeze()
    row, answer = first(db, call)
    one(db, "ff_replay_execution", execution_id=row["execution_id"])
    assert_repeats(db, row, answer, call)
    again = take(db)
    assert_repeats(db, row, answer, call)
    one(db, "ff_cancel", handle=again["handle"])
    assert_repeats(db, row, answer, call)
    assert violations(db) == []


@pytest.mark.parametrize("call", ["delay", "delay, already over"])
@pytest.mark.parametrize("end", ["cancel", "deadline"])
def test_a_pause_is_answered_after_the_execution_ended_during_it(db, clock, call, end):
    clock.freeze()
    row, answer = first(db, call)
    if end == "cancel":
        one(db, "ff_cancel_execution", execution_id=row["execution_id"])
    else:
        clock.advance(1_000_000)
        one(db, "ff_expire_execution", execution_id=row["execution_id"], phase="execution_deadline")
    assert_repeats(db, row, answer, call)
    assert violations(db) == []


def test_of_two_pauses_the_latest_is_remembered(db, clock):
    clock.freeze()
    early, _ = first(db, "delay, already over")
    late = take(db)
    answer = one(db, "ff_delay", handle=late["handle"], delay_ms=0)
    assert_repeats(db, late, answer, "delay, already over")
    with refused("execution_not_active"):
        one(db, "ff_delay", handle=early["handle"], delay_ms=0)


@every_call
def test_another_operation_with_the_same_fence_meets_the_ordinary_checks(db, clock, call):
    clock.freeze()
    row, _ = first(db, call)
    verb = CALLS[call][0]
    others = {"ff_complete": {}, "ff_fail": {}, "ff_delay": {"delay_ms": 0}, "ff_cancel": {}, "ff_renew": {}}
    others |= {"ff_progress": {}}
    del others[verb]
    before = everything(db)
    for other, args in others.items():
        with refused("execution_not_active"):
            one(db, other, handle=row["handle"], **args)
    assert everything(db) == before
    if call in ENDS:
        one(db, "ff_replay_execution", execution_id=row["execution_id"])
    clock.advance(1000)
    take(db)
    for other, args in others.items():
        with refused("stale_lease"):
            one(db, other, handle=row["handle"], **args)


@every_call
def test_a_fence_that_is_not_quite_the_same_is_no_repetition(db, clock, call):
    clock.freeze()
    row, _ = first(db, call)
    short, typed, args, _ = CALLS[call]
    stranger = uuid.UUID(int=row["lease_id"].int ^ 1 << 64)
    for change in ({"lease_epoch": 2}, {"lease_id": stranger}, {"attempt_id": stranger}):
        other = {**fence(row), **change}
        with refused("execution_not_active"):
            one(db, short, **one(db, "ff_handle_encode", **other), **args)
        if typed:
            with refused("execution_not_active"):
                one(db, typed, **other, **args)


VERBS = {"ff_complete": {}, "ff_fail": {}, "ff_delay": {"delay_ms": 0}, "ff_cancel": {}}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "ending",
    [
        "complete override",
        "fail override",
        "delay override",
        "operator cancel",
        "cascading cancel",
        "attempt timeout",
        "deadline",
        "reclaim",
        "too many reclaims",
    ],
)
def test_an_end_that_the_holder_did_not_ask_for_is_no_repetition(db, clock, verb, ending):
    clock.freeze()
    eid = create(db, policy={**POLICY, "max_reclaim_count": 0 if ending == "too many reclaims" else 1})
    row = take(db)
    override = {"execution_id": eid, "source": "operator_override"}
    if ending == "complete override":
        one(db, "ff_complete_execution", **override)
    elif ending == "fail override":
        one(db, "ff_fail_execution", **override)
    elif ending == "delay override":
        one(db, "ff_delay_execution", **override, delay_ms=0)
    elif ending == "operator cancel":
        one(db, "ff_cancel_execution", **override)
    elif ending == "cascading cancel":
        one(db, "ff_cancel_execution", execution_id=eid, source="flow_cascade")
    elif ending == "attempt timeout":
        clock.advance(60_000)
        one(db, "ff_expire_execution", execution_id=eid, phase="attempt_timeout")
    elif ending == "deadline":
        clock.advance(1_000_000)
        one(db, "ff_expire_execution", execution_id=eid, phase="execution_deadline")
    elif ending == "reclaim":
        clock.advance(30_000)
        one(db, "ff_complete", handle=take(db)["handle"])
    else:
        clock.advance(30_000)
        assert not db.execute("select * from ff_claim('default', 'w', 'w')").fetchall()
    before = everything(db)
    with refused("execution_not_active"):
        one(db, verb, handle=row["handle"], **VERBS[verb])
    assert everything(db) == before
    assert violations(db) == []


def test_a_cancel_by_the_holder_is_the_same_operation_short_and_typed(db, clock):
    clock.freeze()
    eid = create(db)
    row = take(db)
    holder = {k: v for k, v in fence(row).items() if k != "attempt_index"} | {"source": "lease_holder"}
    answer = {"outcome": "cancelled", "public_state": "cancelled", "cancelled_from": "active"}
    assert one(db, "ff_cancel_execution", **holder) == answer
    before = everything(db)
    assert one(db, "ff_cancel", handle=row["handle"])["replayed"] is True
    assert one(db, "ff_cancel_execution", **holder)["outcome"] == "already_cancelled"
    assert everything(db) == before
    one(db, "ff_replay_execution", execution_id=eid)
    before = everything(db)
    assert one(db, "ff_cancel", handle=row["handle"])["replayed"] is True
    assert one(db, "ff_cancel_execution", **holder) == answer
    assert everything(db) == before
