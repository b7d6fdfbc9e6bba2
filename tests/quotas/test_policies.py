"""Defining, changing and reading quota policies."""

import pytest

from tests.quotas.support import ask, limits, many, parked, policy, state, under
from tests.sql import claim, create, one, refused, rows, take, violations

LIMITS = ["window_seconds", "max_requests_per_window", "max_concurrent", "jitter_ms"]


def define(db, name="q", **args):
    return one(db, "ff_create_quota_policy", quota_policy_id=name, **args)


def change(db, name="q", **args):
    return one(db, "ff_update_quota_policy", quota_policy_id=name, **args)


def test_a_policy_is_created_once_and_the_same_again_is_satisfied(db):
    given = {"window_seconds": 60, "max_requests_per_window": 5, "max_concurrent": 2, "jitter_ms": 7}
    assert define(db, **given) == {"outcome": "created", "quota_policy_id": "q"}
    assert define(db, **given)["outcome"] == "already_satisfied"
    assert limits(db) == {**given, "active_concurrency": 0, "window_count": 0, "is_unlimited": False}


@pytest.mark.parametrize("other", LIMITS)
def test_other_limits_under_the_same_name_are_a_conflict(db, other):
    given = {"window_seconds": 60, "max_requests_per_window": 5, "max_concurrent": 2, "jitter_ms": 7}
    define(db, **given)
    with refused("quota_policy_conflict") as refusal:
        define(db, **{**given, other: 9})
    assert refusal.detail[other] == given[other]


@pytest.mark.parametrize("limit", LIMITS)
def test_negative_limits_are_no_policy(db, limit):
    with refused("invalid_quota_spec"):
        define(db, **{limit: -1})
    define(db)
    with refused("invalid_quota_spec"):
        change(db, **{limit: -1})
    with refused("invalid_input") as refusal:
        define(db, **{limit: None})
    assert refusal.detail["arg"] == f"p_{limit}"


def test_starts_need_a_window(db):
    with refused("invalid_quota_spec"):
        define(db, max_requests_per_window=1)
    define(db, max_requests_per_window=1, window_seconds=1)
    with refused("invalid_quota_spec"):
        change(db, window_seconds=0)
    assert limits(db)["window_seconds"] == 1


@pytest.mark.parametrize("name", ["", "x" * 201, "ü" * 1000])
def test_a_policy_id_outside_1_to_200_characters_is_an_invalid_spec(db, name):
    with refused("invalid_quota_spec") as refusal:
        define(db, name)
    assert (refusal.detail["arg"], refusal.detail["characters"]) == ("p_quota_policy_id", len(name))


@pytest.mark.parametrize("name", [None, "a\nb"])
def test_a_policy_id_is_text_without_control_characters(db, name):
    with refused("invalid_input"):
        define(db, name)


def test_200_characters_are_not_200_bytes(db):
    assert define(db, "ü" * 200)["outcome"] == "created"
    under(db, "ü" * 200)
    take(db)


def test_a_policy_without_limits_is_unlimited_and_still_counts(db):
    define(db)
    assert limits(db)["is_unlimited"] is True
    for _ in range(3):
        under(db)
        take(db)
    assert limits(db)["active_concurrency"] == 3
    change(db, window_seconds=60)
    assert limits(db)["window_count"] == 3
    assert limits(db)["is_unlimited"] is True


def test_an_unknown_policy_has_no_limits_to_read_or_change(db):
    assert rows(db, "ff_read_quota_policy_limits", quota_policy_id="nobody") == []
    with refused("quota_policy_not_found"):
        change(db, "nobody", max_concurrent=1)
    with refused("invalid_input"):
        rows(db, "ff_read_quota_policy_limits", quota_policy_id=None)


def test_an_update_changes_what_it_names_and_nothing_else(db):
    define(db, max_concurrent=2, jitter_ms=5)
    assert change(db) == {"outcome": "unchanged", "released": 0}
    assert change(db, max_concurrent=2) == {"outcome": "unchanged", "released": 0}
    assert change(db, max_concurrent=3) == {"outcome": "updated", "released": 0}
    assert limits(db)["max_concurrent"] == 3
    assert limits(db)["jitter_ms"] == 5


def test_an_update_lets_parked_executions_go_as_far_as_there_is_room(db):
    define(db, max_concurrent=1)
    eids = many(db, 6, "q")
    take(db)
    assert claim(db) is None
    assert parked(db) == 5
    assert change(db, max_concurrent=3) == {"outcome": "updated", "released": 2}
    assert [state(db, eid) for eid in eids[1:4]] == ["eligible_now", "eligible_now", "blocked_by_quota"]
    assert change(db, max_concurrent=0) == {"outcome": "updated", "released": 3}
    assert violations(db) == []


def test_an_update_does_not_wait_for_the_time_that_old_limits_gave(db, clock):
    clock.freeze()
    policy(db, per_window=1)
    under(db, priority=1)
    second = under(db)
    take(db)
    assert claim(db) is None
    assert change(db, max_requests_per_window=2)["released"] == 1
    assert take(db)["execution_id"] == second


def test_lower_limits_interrupt_no_work(db):
    policy(db, at_once=2)
    many(db, 3, "q")
    held = [take(db), take(db)]
    change(db, max_concurrent=1)
    assert limits(db)["active_concurrency"] == 2
    one(db, "ff_complete", handle=held[0]["handle"])
    assert claim(db) is None
    one(db, "ff_complete", handle=held[1]["handle"])
    take(db)


def test_a_policy_that_nothing_hangs_on_costs_nothing_on_other_lanes(db):
    policy(db, at_once=1)
    create(db)
    take(db)
    assert db.execute("select count(*) from ff_quota_window").fetchone()[0] == 0
    assert ask(db, create(db))["outcome"] == "admitted"
