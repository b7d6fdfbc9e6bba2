"""ff_create_budget, ff_update_budget and the reads."""

import pytest

from tests.budgets.support import breaches, budget, report, status, used
from tests.sql import one, refused, rows, table, violations


def test_a_new_budget_shows_its_definition(db, clock):
    now = clock.freeze()
    made = budget(
        db,
        dimensions=["tokens", "cents", "calls"],
        hard_limits=[100, 0, None],
        soft_limits=[50, 7, 0],
        scope_type="team",
        scope_id="red",
        enforcement_mode="warn",
        on_hard_limit="block",
        on_soft_limit="none",
        reset_interval_ms=1000,
        release_on_terminal=True,
    )
    assert made == {"outcome": "created", "budget_id": "b", "next_reset_at_ms": now + 1000}
    found = rows(db, "ff_get_budget_status", budget_id="b")
    assert [(r["dimension"], r["current_usage"], r["hard_limit"], r["soft_limit"]) for r in found] == [
        ("calls", 0, None, None),
        ("cents", 0, None, 7),
        ("tokens", 0, 100, 50),
    ]
    assert {
        k: v
        for k, v in found[0].items()
        if k not in ("dimension", "current_usage", "hard_limit", "soft_limit")
    } == {
        "budget_id": "b",
        "scope_type": "team",
        "scope_id": "red",
        "enforcement_mode": "warn",
        "on_hard_limit": "block",
        "on_soft_limit": "none",
        "reset_interval_ms": 1000,
        "next_reset_at_ms": now + 1000,
        "last_reset_at_ms": None,
        "reset_epoch": 0,
        "reset_count": 0,
        "release_on_terminal": True,
        "breached": False,
        "breach_count": 0,
        "soft_breach_count": 0,
        "last_breach_at_ms": None,
        "last_breach_dim": None,
        "created_at_ms": now,
        "updated_at_ms": now,
    }
    assert violations(db) == []


def test_defaults(db):
    assert budget(db)["next_reset_at_ms"] is None
    found = status(db)
    assert (found["enforcement_mode"], found["on_hard_limit"], found["on_soft_limit"]) == (
        "strict",
        "fail",
        "warn",
    )
    assert (found["scope_type"], found["scope_id"], found["reset_interval_ms"]) == ("", "", 0)
    assert found["release_on_terminal"] is False


def test_a_budget_without_dimensions_has_one_row_in_its_status_and_none_in_its_usage(db):
    budget(db, dimensions=[], hard_limits=[], soft_limits=[])
    (found,) = rows(db, "ff_get_budget_status", budget_id="b")
    assert (found["dimension"], found["current_usage"], found["hard_limit"]) == (None, None, None)
    assert used(db) == {}


BAD = [
    {"budget_id": None},
    {"budget_id": ""},
    {"budget_id": "x" * 201},
    {"budget_id": "a\nb"},
    {"dimensions": None},
    {"dimensions": [None]},
    {"dimensions": [""]},
    {"dimensions": ["x" * 129]},
    {"dimensions": ["a", "b"]},
    {"dimensions": ["a", "a"], "hard_limits": [1, 1], "soft_limits": [1, 1]},
    {"dimensions": [["a"], ["b"]], "hard_limits": [1, 1], "soft_limits": [1, 1]},
    {"hard_limits": None},
    {"hard_limits": [1, 2]},
    {"hard_limits": [-1]},
    {"soft_limits": None},
    {"soft_limits": []},
    {"soft_limits": [-1]},
    {"soft_limits": [101]},
    {"scope_type": None},
    {"scope_id": "x" * 257},
    {"enforcement_mode": "STRICT"},
    {"enforcement_mode": None},
    {"on_hard_limit": "cancel"},
    {"on_hard_limit": None},
    {"on_soft_limit": "block"},
    {"on_soft_limit": None},
    {"reset_interval_ms": -1},
    {"reset_interval_ms": None},
    {"reset_interval_ms": 2**63 - 1},
    {"release_on_terminal": None},
]


@pytest.mark.parametrize("wrong", BAD, ids=str)
def test_a_bad_definition_is_refused(db, wrong):
    with refused("invalid_input") as refusal:
        budget(db, **{"budget_id": "b", **wrong})
    named = table(
        db,
        "select %s = any (proargnames) as ok from pg_proc where proname = 'ff_create_budget'",
        refusal.detail["arg"],
    )
    assert named == [{"ok": True}], refusal.detail
    assert table(db, "select from ff_budget") == []


def test_the_same_definition_is_already_satisfied_whatever_was_used_since(db, clock):
    clock.freeze()
    first = budget(db, reset_interval_ms=1000)
    report(db, {"tokens": 10, "undeclared": 5})
    clock.advance(500)
    assert budget(db, reset_interval_ms=1000) == {**first, "outcome": "already_satisfied"}
    # A dimension without limits says nothing.
    assert (
        budget(
            db,
            dimensions=["other", "tokens"],
            hard_limits=[0, 100],
            soft_limits=[None, 50],
            reset_interval_ms=1000,
        )["outcome"]
        == "already_satisfied"
    )
    assert used(db) == {"tokens": 10, "undeclared": 5}


@pytest.mark.parametrize(
    "other",
    [
        {"hard_limits": [101]},
        {"soft_limits": [0]},
        {"dimensions": ["cents"]},
        {"dimensions": [], "hard_limits": [], "soft_limits": []},
        {"dimensions": ["tokens", "cents"], "hard_limits": [100, 1], "soft_limits": [50, 0]},
        {"scope_type": "x"},
        {"scope_id": "x"},
        {"enforcement_mode": "warn"},
        {"on_hard_limit": "block"},
        {"on_soft_limit": "none"},
        {"reset_interval_ms": 1},
        {"release_on_terminal": True},
    ],
    ids=str,
)
def test_another_definition_is_a_conflict(db, other):
    budget(db)
    with refused("budget_conflict") as refusal:
        budget(db, **other)
    assert refusal.detail["budget_id"] == "b"


def test_limits_can_be_changed_added_and_taken_away(db, clock):
    now = clock.freeze()
    budget(db)
    clock.advance(5)
    assert one(db, "ff_update_budget", budget_id="b", dimension="tokens", hard_limit=100, soft_limit=50) == {
        "outcome": "unchanged",
        "breached": False,
    }
    assert status(db)["updated_at_ms"] == now
    assert (
        one(db, "ff_update_budget", budget_id="b", dimension="tokens", hard_limit=200)["outcome"] == "updated"
    )
    assert one(db, "ff_update_budget", budget_id="b", dimension="cents", soft_limit=7)["outcome"] == "updated"
    assert (
        one(db, "ff_update_budget", budget_id="b", dimension="cents", hard_limit=0, soft_limit=7)["outcome"]
        == "unchanged"
    )
    found = rows(db, "ff_read_budget_usage_and_limits", budget_id="b")
    assert [tuple(r.values()) for r in found] == [
        ("cents", 0, None, 7, False),
        ("tokens", 0, 200, None, False),
    ]
    assert status(db)["updated_at_ms"] == now + 5
    assert one(db, "ff_update_budget", budget_id="b", dimension="tokens")["outcome"] == "updated"
    assert report(db, 10**15)["outcome"] == "ok"


def test_an_update_refuses_bad_input_and_unknown_budgets(db):
    budget(db)
    for wrong in (
        {"dimension": None},
        {"dimension": ""},
        {"hard_limit": -1},
        {"soft_limit": -1},
        {"hard_limit": 5, "soft_limit": 6},
    ):
        with refused("invalid_input"):
            one(db, "ff_update_budget", **{"budget_id": "b", "dimension": "tokens", **wrong})
    with refused("invalid_input"):
        one(db, "ff_update_budget", budget_id=None, dimension="tokens")
    with refused("budget_not_found") as refusal:
        one(db, "ff_update_budget", budget_id="no", dimension="tokens")
    assert refusal.detail["budget_id"] == "no"
    with refused("invalid_input"):  # the input comes first
        one(db, "ff_update_budget", budget_id="no", dimension="tokens", hard_limit=-1)


def test_a_limit_below_what_was_used_is_sound_and_blocks(db):
    budget(db)
    report(db, 80)
    assert one(db, "ff_update_budget", budget_id="b", dimension="tokens", hard_limit=60)["breached"] is False
    assert violations(db) == []
    assert report(db, 1)["outcome"] == "hard_breach"
    assert report(db, 0)["outcome"] == "ok"
    assert rows(db, "ff_read_budget_usage_and_limits", budget_id="b")[0]["hard_exhausted"] is True


def test_a_breached_budget_opens_when_no_limit_is_reached_any_more(db):
    limits = {"dimensions": ["a", "b"], "hard_limits": [10, 10], "soft_limits": [0, 0]}
    budget(db, **limits, on_hard_limit="cancel_all")
    report(db, {"a": 10, "b": 5})
    assert report(db, {"b": 6})["outcome"] == "hard_breach"
    assert (status(db)["breached"], breaches(db)) == (True, ["b"])
    # b is not reached any more, a still is.
    assert one(db, "ff_update_budget", budget_id="b", dimension="b", hard_limit=20) == {
        "outcome": "updated",
        "breached": True,
    }
    assert one(db, "ff_update_budget", budget_id="b", dimension="a", hard_limit=10)["breached"] is True
    assert breaches(db) == ["b"]
    assert one(db, "ff_update_budget", budget_id="b", dimension="a", hard_limit=11) == {
        "outcome": "updated",
        "breached": False,
    }
    assert (status(db)["breached"], breaches(db)) == (False, [])
    assert status(db)["breach_count"] == 1
    assert violations(db) == []


def test_reads_of_what_is_not_there(db):
    assert rows(db, "ff_read_budget_usage_and_limits", budget_id="no") == []
    with refused("budget_not_found"):
        rows(db, "ff_get_budget_status", budget_id="no")
    for function in ("ff_read_budget_usage_and_limits", "ff_get_budget_status"):
        with refused("invalid_input"):
            rows(db, function, budget_id=None)


def test_exhausted_means_that_nothing_is_left(db):
    budget(db)

    def exhausted():
        return rows(db, "ff_read_budget_usage_and_limits", budget_id="b")[0]["hard_exhausted"]

    report(db, 99)
    assert exhausted() is False
    report(db, 1)
    assert exhausted() is True
