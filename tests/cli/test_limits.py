"""`pyff budget`, `pyff quota`, and `pyff requeue` of what they hold back."""

from psycopg.types.json import Jsonb

from tests.sql import claim, create, execution, one, rows, take


def test_a_budget_is_defined_shown_changed_and_reset(db, pyff):
    assert pyff("budget", "list").out.startswith("no budget")
    definition = ["team-red", "--limit", "tokens=1000:800", "--limit", "cents=5", "--on-hard", "block"]
    assert pyff("budget", "create", *definition, "--reset-every", "1d").out == "budget team-red created\n"
    assert (
        pyff("budget", "create", *definition, "--reset-every", "1d").out == "budget team-red already exists\n"
    )
    assert "(hint: " in pyff("budget", "create", *definition, code=1).err
    rows(db, "ff_report_usage_admin", budget_id="team-red", deltas=Jsonb({"tokens": 900, "calls": 3}))
    rows(db, "ff_report_usage_admin", budget_id="team-red", deltas=Jsonb({"cents": 6}))
    shown = pyff("budget", "show", "team-red", "--json").object
    assert (shown["breached"], shown["breach_count"], shown["reset_interval_ms"]) == (True, 1, 86_400_000)
    assert [
        (d["dimension"], d["current_usage"], d["hard_limit"], d["soft_limit"], d["used_up"])
        for d in shown["dimensions"]
    ] == [
        ("calls", 3, None, None, None),
        ("cents", 0, 5, None, "0%"),
        ("tokens", 900, 1000, 800, "90%"),
    ]
    assert pyff("budget", "show", "team-red").out.startswith("team-red is breached\n")
    assert [row["dimension"] for row in pyff("budget", "list", "--json").objects] == [
        "calls",
        "cents",
        "tokens",
    ]
    assert "90%" in pyff("budget", "list").out
    said = pyff("budget", "set", "team-red", "tokens", "--hard", "2000").out
    assert said.startswith("tokens of team-red: updated, hard 2000, soft 800")
    assert pyff("budget", "set", "team-red", "tokens", "--soft", "0", "--json").object["outcome"] == "updated"
    (tokens,) = [
        r for r in rows(db, "ff_get_budget_status", budget_id="team-red") if r["dimension"] == "tokens"
    ]
    assert (tokens["hard_limit"], tokens["soft_limit"] or None) == (2000, None)
    assert pyff("budget", "reset", "team-red").out == "budget team-red was reset\n"
    assert pyff("budget", "show", "team-red").out.startswith("team-red is open\n")


def test_work_is_put_under_a_budget_and_taken_out(db, pyff):
    pyff("budget", "create", "b", "--limit", "n=1")
    wire = create(db)
    assert pyff("budget", "attach", "b", "--execution", wire).out == f"{wire}: attached\n"
    assert pyff("budget", "attach", "b", "--execution", wire[-36:]).out == f"{wire}: already attached\n"
    assert execution(db, wire)["budget_ids"] == ["b"]
    assert pyff("budget", "detach", "b", "--execution", wire, "--json").object["outcome"] == "detached"
    assert "is not under budget b" in pyff("budget", "detach", "b", "--execution", wire, code=3).err
    flow = one(db, "ff_create_flow")["flow_id"]
    assert pyff("budget", "attach", "b", "--flow", flow).out == f"{flow}: attached\n"


def test_what_a_budget_is_not_is_refused(pyff, bare):
    for args in (["show", "none"], ["reset", "none"], ["set", "none", "n", "--hard", "1"]):
        assert pyff("budget", *args, code=3).err.startswith("pyff: ")
    assert "nothing to change" in pyff("budget", "set", "none", "n", code=1).err
    assert "given twice" in pyff("budget", "create", "b", "--limit", "n=1", "--limit", "n=2", code=1).err
    assert pyff("budget", "create", "b", "--limit", "n=1:2", code=1).err.startswith("pyff: ")
    for limit in ("n", "=1", "n=x", "n=1:x", "n=-1", "n=" + "9" * 19):
        assert bare("budget", "create", "b", "--limit", limit).code == 2


def test_a_quota_policy_is_defined_shown_and_changed(db, pyff):
    assert pyff("quota", "list").out.startswith("no policy")
    definition = ["mail", "--per-window", "100", "--window", "1m", "--at-once", "5"]
    assert pyff("quota", "create", *definition).out == "quota policy mail created\n"
    assert pyff("quota", "create", *definition).out == "quota policy mail already exists\n"
    shown = pyff("quota", "show", "mail", "--json").object
    assert (shown["window_seconds"], shown["max_requests_per_window"], shown["max_concurrent"]) == (
        60,
        100,
        5,
    )
    assert "max_concurrent:" in pyff("quota", "show", "mail").out
    changed = pyff("quota", "set", "mail", "--per-window", "200", "--jitter", "50ms", "--json").object
    assert (changed["outcome"], changed["released"]) == ("updated", 0)
    (row,) = pyff("quota", "list", "--json").objects
    assert (
        row["quota_policy_id"],
        row["max_requests_per_window"],
        row["jitter_ms"],
        row["max_concurrent"],
    ) == (
        "mail",
        200,
        50,
        5,
    )
    pyff("quota", "create", "free")
    assert pyff("quota", "show", "free").out.startswith("free is unlimited\n")


def test_a_full_policy_parks_work_which_new_limits_or_a_requeue_release(db, pyff):
    pyff("quota", "create", "one", "--at-once", "1")
    ids = [create(db) for _ in range(3)]
    for wire in ids:
        assert pyff("quota", "attach", "one", "--execution", wire).out == f"{wire}: attached\n"
    running = take(db)["execution_id"]
    assert claim(db, worker="v") is None
    parked = [wire for wire in ids if wire != running]
    assert {execution(db, wire)["public_state"] for wire in parked} == {"rate_limited"}
    assert pyff("requeue", parked[0]).out == f"{parked[0]} unblocked, is waiting\n"
    assert pyff("quota", "set", "one", "--at-once", "3").out.startswith("quota policy one: updated, ")
    assert claim(db, worker="v") is not None
    assert "(hint: " in pyff("quota", "detach", "--execution", running, code=1).err
    free = create(db)
    assert "is under no quota policy" in pyff("quota", "detach", "--execution", free, code=3).err


def test_what_an_operator_holds_is_released_by_requeue(db, pyff):
    wire = create(db)
    one(db, "ff_block_execution_for_admission", execution_id=wire, reason="paused_by_operator")
    assert claim(db) is None
    assert pyff("show", wire).out.startswith(f"{wire} is waiting: paused_by_operator")
    assert pyff("requeue", wire).out == f"{wire} unblocked, is waiting\n"
    assert claim(db) is not None


def test_what_a_policy_is_not_is_refused(pyff):
    for args in (["show", "none"], ["set", "none", "--at-once", "1"]):
        assert pyff("quota", *args, code=3).err.startswith("pyff: ")
    assert "nothing to change" in pyff("quota", "set", "none", code=1).err
    assert "whole number of seconds" in pyff("quota", "create", "q", "--window", "1500ms", code=1).err
    assert pyff("quota", "create", "q", "--per-window", "5", code=1).err.startswith("pyff: ")
