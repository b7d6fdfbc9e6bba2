"""ff_progress and ff_update_progress: progress reports of a worker."""

import pytest

from tests.executions.states import POLICY, attempts, everything, fence
from tests.sql import create, events, execution, one, refused, take, violations


def progress(db, eid):
    return [
        (a["progress_pct"], a["progress_message"], a["progress_updated_at_ms"]) for a in attempts(db, eid)
    ]


def test_progress_is_kept_on_the_attempt_and_changes_nothing_else(db, clock):
    now = clock.freeze()
    eid = create(db)
    row = take(db)
    before = execution(db, eid)
    clock.advance(5)
    assert one(db, "ff_progress", handle=row["handle"], percent=40, message="half") == {
        "progress_pct": 40,
        "progress_updated_at_ms": now + 5,
    }
    assert progress(db, eid) == [(40, "half", now + 5)]
    assert execution(db, eid) == before
    assert events(db, eid) == ["lease/acquired"]
    assert violations(db) == []


def test_null_leaves_a_field_as_it_is(db, clock):
    now = clock.freeze()
    eid = create(db)
    handle = take(db)["handle"]
    assert one(db, "ff_progress", handle=handle)["progress_pct"] is None
    one(db, "ff_progress", handle=handle, percent=10, message="a")
    clock.advance(1)
    assert one(db, "ff_progress", handle=handle, message="b")["progress_pct"] == 10
    assert progress(db, eid) == [(10, "b", now + 1)]
    clock.advance(1)
    assert one(db, "ff_progress", handle=handle, percent=5)["progress_pct"] == 5
    assert progress(db, eid) == [(5, "b", now + 2)]
    assert one(db, "ff_progress", handle=handle, message="")["progress_pct"] == 5
    assert progress(db, eid) == [(5, "", now + 2)]


@pytest.mark.parametrize("percent", [0, 1, 100])
def test_a_percentage_lies_between_0_and_100(db, percent):
    create(db)
    assert one(db, "ff_progress", handle=take(db)["handle"], percent=percent)["progress_pct"] == percent


@pytest.mark.parametrize("percent", [-1, 101, 2**31 - 1, -(2**31)])
def test_another_number_is_refused(db, percent):
    create(db)
    row = take(db)
    before = everything(db)
    with refused("invalid_input") as refusal:
        one(db, "ff_progress", handle=row["handle"], percent=percent)
    assert refusal.detail["arg"] == "p_percent"
    with refused("invalid_input"):
        one(db, "ff_update_progress", **fence(row), percent=percent)
    assert everything(db) == before


def test_the_fence_is_checked_before_the_number(db, clock):
    clock.freeze()
    create(db)
    row = take(db, lease_ttl_ms=10)
    clock.advance(10)
    with refused("lease_expired"):
        one(db, "ff_progress", handle=row["handle"], percent=101)


@pytest.mark.parametrize(
    ("message", "stored"),
    [("x" * 4096, "x" * 4096), ("x" * 4097, "x" * 4096), ("ü" * 9000, "ü" * 4096), ("a\nb", "a\nb")],
)
def test_a_message_is_cut_and_never_refused(db, message, stored):
    eid = create(db)
    one(db, "ff_progress", handle=take(db)["handle"], message=message)
    assert attempts(db, eid)[0]["progress_message"] == stored


def test_progress_does_not_extend_the_lease(db, clock):
    clock.freeze()
    create(db)
    row = take(db, lease_ttl_ms=100)
    clock.advance(99)
    one(db, "ff_progress", handle=row["handle"], percent=1)
    clock.advance(1)
    with refused("lease_expired"):
        one(db, "ff_progress", handle=row["handle"], percent=2)


def test_a_resumed_attempt_keeps_its_progress_and_a_new_one_starts_empty(db, clock):
    now = clock.freeze()
    eid = create(db, policy=POLICY)
    row = take(db)
    one(db, "ff_progress", handle=row["handle"], percent=40, message="m")
    one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    row = take(db)
    assert progress(db, eid) == [(40, "m", now)]
    one(db, "ff_fail", handle=row["handle"])
    clock.advance(1000)
    row = take(db)
    assert progress(db, eid) == [(40, "m", now), (None, None, None)]
    assert one(db, "ff_update_progress", **fence(row), percent=1) == {
        "progress_pct": 1,
        "progress_updated_at_ms": now + 1000,
    }
    assert progress(db, eid) == [(40, "m", now), (1, None, now + 1000)]


def test_progress_is_described_for_the_current_attempt(db, clock):
    now = clock.freeze()
    eid = create(db)
    one(db, "ff_progress", handle=take(db)["handle"], percent=7, message="m")
    found = one(db, "ff_describe_execution", execution_id=eid)
    assert (found["progress_pct"], found["progress_message"], found["progress_updated_at_ms"]) == (
        7,
        "m",
        now,
    )
