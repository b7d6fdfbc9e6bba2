"""Usage and its sweeps read only the rows they need, whatever other rows exist."""

from tests.budgets.support import attach, budget, report, spend
from tests.catalogue.test_plans import explained, wasted  # noqa: F401
from tests.sql import create, one, rows

MANY = 200


def many_rows(db, clock):
    """Many budgets with usage, keys and ledgers, and many executions that ended, run or wait: those that wait."""
    clock.freeze()
    ids = [
        row["execution_id"]
        for row in rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 2 * MANY)
    ]
    leased = rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w-1", limit=MANY)
    rows(db, "ff_complete_many", handles=[row["handle"] for row in leased[: MANY // 2]])
    db.execute(
        """select count(ff_create_budget('other' || n, '{cents,tokens}', '{100,100}', '{0,0}',
                                         p_reset_interval_ms => 3600000, p_on_hard_limit => 'cancel_all'))
             from generate_series(1, %s) n""",
        [MANY],
    )
    db.execute(
        """select count(ff_record_spend('other' || x.n, x.id, '{"tokens": 1, "cents": 1}', 'k'))
             from unnest(%s::text[]) with ordinality x(id, n) where x.n <= %s""",
        [ids, MANY],
    )
    return sorted(set(ids) - {row["execution_id"] for row in leased})


def test_reports_spends_and_releases_read_one_budget(db, clock, explained):  # noqa: F811
    budget(db, dimensions=["cents", "tokens"], hard_limits=[100, 100], soft_limits=[0, 0])
    spend(db, create(db), {"cents": 1, "tokens": 1, "new": 1}, "first")  # planned on next to nothing
    ids = many_rows(db, clock)
    deltas = {"cents": 1, "tokens": 2}
    for function, args in (
        ("ff_report_usage_admin", {"deltas": deltas, "dedup_key": "k"}),
        ("ff_report_usage_admin", {"deltas": {"tokens": 500}}),
        ("ff_record_spend", {"deltas": deltas, "execution_id": ids[0], "idempotency_key": "s"}),
        ("ff_release_budget", {"execution_id": ids[0]}),
        ("ff_reset_budget", {}),
        ("ff_update_budget", {"dimension": "tokens", "hard_limit": 7}),
        ("ff_attach_budget", {"execution_id": ids[-1]}),
        ("ff_detach_budget", {"execution_id": ids[-1]}),
    ):
        _, ran = explained(function, budget_id="b", **args)
        assert list(wasted(ran)) == [], function


def test_the_sweeps_read_what_is_due(db, clock, explained):  # noqa: F811
    for name in ("budget_breaches", "budget_resets", "terminal_spend"):
        one(db, f"ff_sweep_{name}")
    ids = many_rows(db, clock)
    budget(db, on_hard_limit="cancel_pending", reset_interval_ms=1000, release_on_terminal=True)
    for eid in ids[-3:]:
        attach(db, execution_id=eid)
        spend(db, eid, 1, eid)
    report(db, 101)
    for name, expected in (("budget_breaches", 3), ("terminal_spend", 3)):
        found, ran = explained(f"ff_sweep_{name}")
        assert found[0]["processed"] == expected
        # The work list of breaches is read as a whole: it is short.
        assert [found for found in wasted(ran) if found[1] != "ff_budget_breach"] == [], name
    clock.advance(1000)
    found, ran = explained("ff_sweep_budget_resets")
    assert found[0]["processed"] == 1
    assert list(wasted(ran)) == []
