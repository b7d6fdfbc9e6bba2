"""ff_report_usage, ff_report_usage_admin and ff_record_spend: one body, three functions."""

import uuid

import pytest

from tests.budgets.support import breaches, budget, ledger, report, spend, status, used
from tests.sql import create, one, refused, table, take, violations

DAY = 86_400_000
UNKNOWN_ID = "{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
OK = {
    "outcome": "ok",
    "applied": True,
    "dimension": None,
    "current_usage": None,
    "limit_value": None,
    "original_outcome": None,
}


def work(db, **options):
    create(db, **options)
    return take(db, lease_ttl_ms=DAY)


def verbs(db):
    """The three ways to report; each takes the amounts and a key."""
    handle = work(db)["handle"]
    return {
        "ff_report_usage": lambda deltas, key: one(
            db, "ff_report_usage", handle=handle, budget_id="b", deltas=deltas, dedup_key=key
        ),
        "ff_report_usage_admin": lambda deltas, key: report(db, deltas, dedup_key=key),
        "ff_record_spend": lambda deltas, key: spend(db, UNKNOWN_ID, deltas, key),
    }


@pytest.mark.parametrize("verb", ["ff_report_usage", "ff_report_usage_admin", "ff_record_spend"])
def test_every_outcome_of_every_verb(db, verb):
    budget(db)
    call = verbs(db)[verb]
    assert call({"tokens": 50}, "1") == OK  # the soft limit itself is fine
    soft = {**OK, "outcome": "soft_breach", "dimension": "tokens", "current_usage": 60, "limit_value": 50}
    assert call({"tokens": 10}, "2") == soft
    assert call({"tokens": 10}, "2") == {
        **soft,
        "outcome": "already_applied",
        "original_outcome": "soft_breach",
    }
    hard = {
        **OK,
        "outcome": "hard_breach",
        "applied": False,
        "dimension": "tokens",
        "current_usage": 60,
        "limit_value": 100,
    }
    assert call({"tokens": 41}, "3") == hard
    assert call({"tokens": 41}, "3") == hard  # a refusal is not remembered as done
    assert used(db) == {"tokens": 60}
    assert call({"tokens": 40}, "4")["outcome"] == "soft_breach"  # the hard limit itself is fine
    assert used(db) == {"tokens": 100}
    assert call({}, "5") == OK
    assert call({"tokens": 0}, "6") == OK
    with refused("dedup_key_conflict") as refusal:
        call({"tokens": 11}, "2")
    assert refusal.detail["dedup_key"] == "2"
    assert [
        row["dedup_key"] for row in table(db, "select dedup_key from ff_budget_usage_dedup order by 1")
    ] == [
        "1",
        "2",
        "4",
        "6",
    ]
    found = status(db)
    assert (found["breach_count"], found["soft_breach_count"], found["last_breach_dim"]) == (2, 2, "tokens")
    assert (found["breached"], breaches(db)) == (False, [])  # fail only refuses
    assert violations(db) == []


@pytest.mark.parametrize("verb", ["ff_report_usage", "ff_report_usage_admin", "ff_record_spend"])
@pytest.mark.parametrize(
    "deltas",
    [
        None,
        "null",
        "[]",
        "1",
        '"tokens"',
        '{"tokens": -1}',
        '{"tokens": 0.5}',
        '{"tokens": 9007199254740993}',
        '{"tokens": 1e300}',
        '{"tokens": "1"}',
        '{"tokens": null}',
        '{"tokens": true}',
        '{"tokens": {}}',
        '{"": 1}',
        '{"good": 1, "bad": -1}',
        '{"%s": 1}' % ("x" * 129),
    ],
)
def test_bad_amounts_are_refused_and_nothing_is_counted(db, verb, deltas):
    budget(db)
    call = verbs(db)[verb]
    with refused("invalid_input") as refusal:
        call(deltas, "k")
    assert refusal.detail["arg"] == "p_deltas"
    assert used(db) == {"tokens": 0}


def test_amounts_from_nothing_to_two_to_the_53rd_are_taken(db):
    budget(db, dimensions=[], hard_limits=[], soft_limits=[])
    assert report(db, {"a": 0, "b": 2**53})["outcome"] == "ok"
    assert report(db, '{"c": 2.0, "d": 1e3}')["outcome"] == "ok"
    assert used(db) == {"a": 0, "b": 2**53, "c": 2, "d": 1000}


def test_the_fence_comes_first_then_the_input_then_the_budget(db, clock):
    clock.freeze()
    budget(db)
    row = work(db)
    args = {"budget_id": "b", "deltas": {"tokens": 1}}
    with refused("invalid_handle"):
        one(db, "ff_report_usage", handle="x", budget_id=None, deltas=None)
    with refused("invalid_input"):
        one(db, "ff_report_usage", handle=None, **args)
    with refused("invalid_input"):
        one(db, "ff_report_usage", handle=row["handle"], budget_id="no", deltas="[]")
    with refused("invalid_input"):
        one(db, "ff_report_usage", handle=row["handle"], budget_id="no", deltas={"a": 1}, dedup_key="x" * 513)
    assert one(db, "ff_report_usage", handle=row["handle"], budget_id="no", deltas={}) == OK
    with refused("budget_not_found"):
        one(db, "ff_report_usage", handle=row["handle"], budget_id="no", deltas={"a": 1})
    with refused("invalid_input"):
        one(db, "ff_report_usage", handle=row["handle"], budget_id=None, deltas={})
    clock.advance(DAY)
    with refused("lease_expired"):
        one(db, "ff_report_usage", handle=row["handle"], budget_id=None, deltas=None)
    again = take(db)
    with refused("stale_lease"):
        one(db, "ff_report_usage", handle=row["handle"], **args)
    one(db, "ff_revoke_lease", execution_id=again["execution_id"])
    with refused("lease_revoked"):
        one(db, "ff_report_usage", handle=again["handle"], **args)
    one(db, "ff_cancel_execution", execution_id=again["execution_id"])
    with refused("execution_not_active"):
        one(db, "ff_report_usage", handle=again["handle"], **args)
    assert used(db) == {"tokens": 0}


def test_a_spend_names_an_execution_and_needs_a_key(db):
    budget(db)
    for key in (None, ""):
        with refused("invalid_input") as refusal:
            spend(db, UNKNOWN_ID, 1, key)
        assert refusal.detail["arg"] == "p_idempotency_key"
    with refused("invalid_input") as refusal:
        spend(db, UNKNOWN_ID, 1, "x" * 513)
    assert refusal.detail["arg"] == "p_idempotency_key"
    with refused("invalid_execution_id"):
        spend(db, "x", 1, "k")
    with refused("invalid_input"):
        spend(db, None, 1, "k")
    with refused("budget_not_found"):
        spend(db, UNKNOWN_ID, 1, "k", budget_id="no")
    assert spend(db, UNKNOWN_ID, 1, "x" * 512) == OK


def test_keys_of_512_bytes_are_taken_and_none_is_none(db):
    budget(db)
    with refused("invalid_input") as refusal:
        report(db, 1, dedup_key="x" * 513)
    assert refusal.detail["arg"] == "p_dedup_key"
    with refused("invalid_input"):
        report(db, 1, dedup_key="ü" * 257)
    for key, counted in (("ü" * 256, 1), ("ü" * 256, 1), ("", 2), ("", 3), (None, 4)):
        report(db, 1, dedup_key=key)
        assert used(db) == {"tokens": counted}


def test_a_key_belongs_to_one_budget(db):
    budget(db)
    budget(db, "c")
    assert report(db, 1, dedup_key="k")["outcome"] == "ok"
    assert report(db, 2, "c", dedup_key="k")["outcome"] == "ok"
    assert (used(db), used(db, "c")) == ({"tokens": 1}, {"tokens": 2})


def test_the_same_amounts_are_the_same_however_they_are_written(db):
    budget(db)
    report(db, '{"tokens": 10, "a": 1}', dedup_key="k")
    assert report(db, '{"a": 1.0, "tokens": 1e1}', dedup_key="k")["outcome"] == "already_applied"
    for other in ({"tokens": 10}, {"tokens": 10, "a": 1, "b": 0}, {"tokens": 1, "a": 10}):
        with refused("dedup_key_conflict"):
            report(db, other, dedup_key="k")


def test_a_key_is_forgotten_after_a_day_and_can_be_used_again(db, clock):
    clock.freeze()
    budget(db)
    report(db, 1, dedup_key="k")
    clock.advance(DAY - 1)
    assert report(db, 1, dedup_key="k")["outcome"] == "already_applied"
    clock.advance(1)
    assert report(db, 2, dedup_key="k")["outcome"] == "ok"
    assert used(db) == {"tokens": 3}
    clock.advance(DAY - 1)
    assert report(db, 2, dedup_key="k")["outcome"] == "already_applied"
    assert len(table(db, "select from ff_budget_usage_dedup")) == 1


def test_a_repeat_answers_before_limits_are_looked_at(db):
    budget(db)
    report(db, 100, dedup_key="k")
    assert report(db, 100, dedup_key="k")["outcome"] == "already_applied"
    one(db, "ff_reset_budget", budget_id="b")
    assert report(db, 100, dedup_key="k")["outcome"] == "already_applied"
    assert used(db) == {"tokens": 0}


def test_a_refused_report_succeeds_with_its_key_after_a_reset(db):
    budget(db)
    report(db, 100)
    assert report(db, 7, dedup_key="k")["outcome"] == "hard_breach"
    one(db, "ff_reset_budget", budget_id="b")
    assert report(db, 7, dedup_key="k")["outcome"] == "ok"
    assert used(db) == {"tokens": 7}


def test_of_several_dimensions_all_are_counted_or_none(db):
    limits = {"dimensions": ["c", "a", "b"], "hard_limits": [10, 10, 10], "soft_limits": [5, 5, 5]}
    budget(db, **limits)
    assert report(db, {"a": 1, "b": 6, "c": 6, "z": 100})["dimension"] == "b"  # by name
    assert used(db) == {"a": 1, "b": 6, "c": 6, "z": 100}
    found = report(db, {"a": 1, "b": 5, "c": 5, "z": 1, "new": 1})
    assert (found["outcome"], found["dimension"], found["current_usage"], found["limit_value"]) == (
        "hard_breach",
        "b",
        6,
        10,
    )
    assert used(db) == {"a": 1, "b": 6, "c": 6, "z": 100}
    # Only what is added to counts as passed: b stays above its soft limit.
    assert report(db, {"a": 1, "b": 0})["outcome"] == "ok"


def test_names_are_compared_by_their_bytes(db):
    budget(db, dimensions=["Z", "a", "ä"], hard_limits=[1, 1, 1], soft_limits=[0, 0, 0])
    assert report(db, {"ä": 2, "a": 2, "Z": 2})["dimension"] == "Z"


def test_a_hard_breach_comes_before_a_soft_one(db):
    budget(db, dimensions=["a", "b"], hard_limits=[0, 10], soft_limits=[1, 5])
    found = report(db, {"a": 5, "b": 11})
    assert (found["outcome"], found["dimension"]) == ("hard_breach", "b")
    assert status(db)["soft_breach_count"] == 0


def test_a_budget_that_warns_counts_what_passes_its_limits(db, clock):
    now = clock.freeze()
    budget(db, enforcement_mode="warn", on_hard_limit="cancel_all")
    found = report(db, 101, dedup_key="k")
    assert found == {
        **OK,
        "outcome": "hard_breach",
        "dimension": "tokens",
        "current_usage": 101,
        "limit_value": 100,
    }
    assert report(db, 101, dedup_key="k") == {
        **found,
        "outcome": "already_applied",
        "original_outcome": "hard_breach",
    }
    assert used(db) == {"tokens": 101}
    state = status(db)
    assert (state["breach_count"], state["soft_breach_count"], state["last_breach_at_ms"]) == (1, 1, now)
    assert (state["breached"], breaches(db)) == (False, [])  # actions are for strict budgets
    assert violations(db) == []


def test_soft_limits_are_silent_if_the_budget_says_so(db):
    budget(db, on_soft_limit="none")
    assert report(db, 60) == OK
    assert status(db)["soft_breach_count"] == 0


@pytest.mark.parametrize("action", ["block", "cancel_pending", "cancel_all"])
def test_what_a_breach_sets_in_motion(db, clock, action):
    now = clock.freeze()
    budget(db, on_hard_limit=action)
    report(db, 101)
    clock.advance(5)
    report(db, 102)
    state = status(db)
    assert (state["breached"], state["breach_count"], state["last_breach_at_ms"]) == (True, 2, now + 5)
    assert state["updated_at_ms"] == now + 5
    found = table(db, "select * from ff_budget_breach")
    expected = {"budget_id": "b", "breached_at_ms": now, "action": action}
    assert found == ([] if action == "block" else [expected])
    # What still fits is counted all the same.
    assert report(db, 40) == OK
    assert violations(db) == []


def test_a_count_that_cannot_be_stored_is_refused_whole(db):
    budget(db)
    db.execute(
        "update ff_budget_usage set hard_limit = null, soft_limit = null, current_value = %s", [2**63 - 10]
    )
    assert report(db, {"tokens": 9})["outcome"] == "ok"
    for amounts in ({"tokens": 1}, {"tokens": 2**53}, {"a": 1, "tokens": 1}):
        with refused("budget_overflow") as refusal:
            report(db, amounts)
        assert refusal.detail["dimension"] == "tokens"
    assert used(db) == {"tokens": 2**63 - 1}


def test_a_spend_is_noted_for_its_execution(db):
    budget(db)
    eid = create(db)
    spend(db, eid, {"tokens": 5, "x": 0}, "1")
    spend(db, eid, {"tokens": 6}, "2")
    spend(db, eid, {"tokens": 6}, "2")
    spend(db, eid, {"tokens": 100}, "3")
    report(db, 1)
    (row,) = ledger(db)
    assert (row["execution_id"], row["dimension"], row["reset_epoch"], row["delta_total"]) == (
        uuid.UUID(eid[-36:]),
        "tokens",
        0,
        11,
    )
    assert used(db) == {"tokens": 12, "x": 0}


def test_an_id_under_a_wrong_partition_is_another_execution(db):
    budget(db)
    eid = create(db)
    number = int(eid[4 : eid.index("}")])
    wrong = eid.replace(f"{{fp:{number}}}", f"{{fp:{(number + 1) % 256}}}")
    spend(db, eid, 1, "1")
    spend(db, wrong, 2, "2")
    assert sorted(row["delta_total"] for row in ledger(db)) == [1, 2]
    one(db, "ff_release_budget", budget_id="b", execution_id=wrong)
    assert [row["delta_total"] for row in ledger(db)] == [1]
    assert used(db) == {"tokens": 1}


@pytest.mark.parametrize("counter", ["breach_count", "soft_breach_count"])
def test_a_full_counter_does_not_stop_the_reports(db, counter):
    budget(db)
    db.execute(f"update ff_budget set {counter} = 2147483647")
    assert report(db, 60)["outcome"] == "soft_breach"
    assert report(db, 60)["outcome"] == "hard_breach"
    assert status(db)[counter] == 2147483647
