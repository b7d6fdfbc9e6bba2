"""ff_tick: which steps run and when, many callers at once, what an idle one costs; ff_run_maintenance."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.budgets.support import budget
from tests.catalogue.test_plans import hollow
from tests.flows.graph import begin, busy_flows, fan_in, flow, link, node, state
from tests.maintenance.support import EXECUTION, HOUR, SWEEPS, errors, make, spoil, sweep, unspoil
from tests.postgres.helpers import until
from tests.sql import create, execution, one, refused, rows, table, take, violations

ORDER = [
    "sweep_expired_leases",
    "sweep_attempt_timeouts",
    "sweep_deadlines",
    "sweep_delayed",
    "sweep_suspensions",
    "sweep_waitpoints",
    "drain_cancel_backlog",
    "drain_sibling_cancels",
    "dispatch_completions",
    "sweep_claim_grants",
    "sweep_admissions",
    "sweep_budget_resets",
    "sweep_budget_breaches",
    "sweep_terminal_spend",
    "project_flows",
    "sweep_workers",
    "sweep_expired",
    "trim_retention",
    "trim_streams",
    "trim_events",
    "fire_schedules",
]


def steps(db):
    """The steps that this release has, in the order of the contract."""
    have = {row["name"] for row in table(db, "select name from ff_reconciler")}
    assert have <= set(ORDER)
    return [step for step in ORDER if step in have]


def tick(conn, **args):
    return {row["step"]: row for row in rows(conn, "ff_tick", **args)}


def ran(answer):
    return [step for step, row in answer.items() if not row["skipped"]]


def test_every_step_is_a_function_and_has_a_row(db):
    functions = {
        row["proname"] for row in table(db, "select proname from pg_proc where proname ~ '^ff_[^_]'")
    }
    wanted = {
        f.removeprefix("ff_")
        for f in functions
        if f.startswith(("ff_sweep_", "ff_drain_", "ff_trim_"))
        or f in {"ff_dispatch_completions", "ff_project_flows", "ff_fire_schedules"}
    }
    assert wanted == set(steps(db))


def test_a_new_database_runs_every_step_in_order_and_then_none_until_it_is_due(db, clock):
    clock.freeze()
    answer = tick(db)
    assert list(answer) == ran(answer) == steps(db)
    again = tick(db)
    assert list(again) == steps(db)
    assert ran(again) == []
    clock.advance(749)
    assert ran(tick(db)) == []
    clock.advance(1)
    assert ran(tick(db)) == ["sweep_delayed"]
    clock.advance(300)
    assert [s for s in ran(tick(db)) if not s.startswith("sweep_b") and s != "sweep_admissions"] == [
        "drain_sibling_cancels",
        "dispatch_completions",
        "fire_schedules",
    ]
    # A clock that was set back must not stop maintenance until it has caught up.
    clock.advance(-10_000_000)
    assert ran(tick(db)) == steps(db)


def test_a_step_with_more_to_do_is_due_at_once_but_after_those_whose_interval_is_over(db, clock):
    clock.freeze()
    made = make(db, clock, "sweep_delayed", 5)
    clock.set(made[-1].due_ms)
    answer = tick(db, limit=2)
    assert (answer["sweep_delayed"]["processed"], answer["sweep_delayed"]["more"]) == (2, True)
    assert [row["more"] for step, row in answer.items() if step != "sweep_delayed"].count(True) == 0
    assert ran(tick(db, limit=2)) == ["sweep_delayed"]
    assert tick(db, limit=2)["sweep_delayed"] | {"elapsed_ms": 0} == {
        "step": "sweep_delayed",
        "processed": 1,
        "errors": 0,
        "more": False,
        "skipped": False,
        "elapsed_ms": 0,
    }
    assert ran(tick(db, limit=2)) == []


def test_a_busy_step_cannot_keep_the_others_from_their_turn(db, clock):
    """However little time a call has, the next goes on with the steps that are due."""
    clock.freeze()
    made = make(db, clock, "sweep_expired_leases", 6)
    clock.set(made[-1].due_ms)
    seen = []
    for _ in steps(db):
        answer = tick(db, limit=1, max_ms=0)
        seen += ran(answer)
        assert len(ran(answer)) == 1
    assert seen == steps(db)
    # Then what only has more to do.
    assert ran(tick(db, limit=1, max_ms=0)) == ["sweep_expired_leases"]


def test_steps_for_which_no_time_was_left_ask_for_another_call(db):
    first, *rest = steps(db)
    answer = tick(db, max_ms=0)
    assert ran(answer) == [first]
    assert [answer[step]["more"] for step in rest] == [True] * len(rest)
    answer = tick(db, max_ms=2**31 - 1)
    assert ran(answer) == rest


def test_only_names_steps_and_force_ignores_their_interval_but_not_the_switch(db, clock):
    clock.freeze()
    tick(db)
    assert list(tick(db, only=["sweep_workers", "sweep_delayed", "sweep_workers"])) == [
        "sweep_delayed",
        "sweep_workers",
    ]
    assert rows(db, "ff_tick", only=[]) == []
    assert ran(tick(db, force=True)) == steps(db)
    assert one(db, "ff_set_reconciler", name="sweep_delayed", enabled=False) == {
        "name": "sweep_delayed",
        "enabled": False,
        "interval_ms": 750,
    }
    assert ran(tick(db, force=True, only=["sweep_delayed", "sweep_workers"])) == ["sweep_workers"]
    (due,) = make(db, clock, "sweep_delayed", 1)
    clock.set(due.due_ms + 10_000)
    assert "sweep_delayed" not in ran(tick(db))
    assert one(db, "ff_set_reconciler", name="sweep_delayed", enabled=True, interval_ms=60_000)["enabled"]
    clock.advance(60_000)
    assert tick(db)["sweep_delayed"]["processed"] == 1
    clock.advance(59_999)
    assert "sweep_delayed" not in ran(tick(db))


@pytest.mark.parametrize(
    ("function", "arg", "value"),
    [
        ("ff_tick", "limit", -1),
        ("ff_tick", "limit", 100_001),
        ("ff_tick", "limit", None),
        ("ff_tick", "only", ["sweep_nothing"]),
        ("ff_tick", "only", ["ff_sweep_delayed"]),
        ("ff_tick", "only", [None]),
        ("ff_tick", "force", None),
        ("ff_tick", "max_ms", None),
        ("ff_tick", "max_ms", -1),
        ("ff_set_reconciler", "name", "sweep_nothing"),
        ("ff_set_reconciler", "name", None),
        ("ff_set_reconciler", "interval_ms", -1),
        ("ff_set_reconciler", "interval_ms", 86_400_001),
    ],
)
def test_what_makes_no_sense_is_refused(db, function, arg, value):
    given = {"name": "sweep_delayed"} if function == "ff_set_reconciler" else {}
    with refused("invalid_input") as refusal:
        rows(db, function, **{**given, arg: value})
    assert refusal.detail["arg"] == f"p_{arg}"


def test_a_disabled_step_is_a_matter_of_ticks_alone(db, clock):
    clock.freeze()
    (due,) = make(db, clock, "sweep_delayed", 1)
    clock.set(due.due_ms)
    one(db, "ff_set_reconciler", name="sweep_delayed", enabled=False)
    assert sweep(db, "sweep_delayed") == (1, 0, False)


def replace_step(db, name, body):
    """The step does something else; the definition it had."""
    (old,) = table(db, "select pg_get_functiondef(%s::regproc) as text", f"ff_{name}")
    db.execute(
        f"create or replace function ff_{name}(p_limit int default 200, out processed int, out errors int, "
        f"out more boolean) language plpgsql as $body$ begin {body} end $body$"
    )
    return old["text"]


def test_one_failing_step_does_not_stop_the_others(db, clock):
    clock.freeze()
    old = replace_step(db, "sweep_attempt_timeouts", "raise exception 'out of order';")
    answer = tick(db)
    assert ran(answer) == steps(db)
    assert [step for step, row in answer.items() if row["errors"]] == ["sweep_attempt_timeouts"]
    assert errors(db, "sweep_attempt_timeouts")[""]["last_error"] == "P0001: out of order"
    db.execute(old)
    clock.advance(5000)
    assert tick(db)["sweep_attempt_timeouts"]["errors"] == 0
    assert errors(db, "sweep_attempt_timeouts") == {}
    assert violations(db) == []


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "55P03", "53100", "25006"])
def test_an_error_that_is_not_about_a_row_puts_no_row_off(db, clock, sqlstate):
    clock.freeze()
    (due,) = make(db, clock, "sweep_delayed", 1)
    clock.set(due.due_ms)
    spoil(db, f"raise exception using errcode = '{sqlstate}';")
    with pytest.raises(psycopg.Error) as caught:
        sweep(db, "sweep_delayed")
    assert caught.value.sqlstate == sqlstate
    if sqlstate == "40001":  # the caller's to repeat
        with pytest.raises(psycopg.errors.SerializationFailure):
            tick(db)
    else:
        assert tick(db)["sweep_delayed"]["errors"] == 1
        assert set(errors(db, "sweep_delayed")) == {""}


def test_a_cancelled_query_is_reported(db):
    replace_step(db, "sweep_delayed", "perform pg_sleep(30);")
    db.execute("set local statement_timeout = '200ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        tick(db)


@pytest.mark.own_session("LISTEN")
def test_a_tick_notifies_the_families_that_notify_by_tick(db, connect):
    listener = connect()
    tick(db)
    listener.execute("listen ff_completion_events")
    channels = table(db, "select notify from ff_event_family where family = 'completion'")
    assert channels == [{"notify": "tick"}]
    (before,) = table(db, "select notified_event_id as n from ff_event_family where family = 'completion'")
    create(db)
    one(db, "ff_complete", handle=take(db)["handle"])
    tick(db)
    (after,) = table(db, "select notified_event_id as n from ff_event_family where family = 'completion'")
    assert after["n"] > before["n"]


def test_callers_meet_the_locks_of_one_that_has_not_committed_and_wait_for_none(db, connect, clock):
    """One caller holds the locks of all steps and rows; 20 others, forced or not, finish and process nothing."""
    clock.freeze()
    kinds = [name for name in SWEEPS if name != "trim_streams"]
    made = [due for name in kinds for due in make(db, clock, name, 3)]
    clock.set(max(due.due_ms for due in made))
    holder = connect(autocommit=False)
    held = tick(holder)
    assert ran(held) == steps(db)
    # An attempt's lease does not outlive it: both are found.
    assert {name: held[name]["processed"] for name in kinds} == {
        **dict.fromkeys(kinds, 3),
        "sweep_expired_leases": 6,
    }

    def call(n):
        with psycopg.connect(db.info.dsn, autocommit=True, password=db.info.password) as conn:
            conn.execute("set statement_timeout = '60s'")
            return tick(conn, force=n % 2 == 0, limit=1000)

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(call, range(20)))
    assert [ran(answer) for answer in answers[1::2]] == [[]] * 10
    assert sum(row["processed"] + row["errors"] for answer in answers for row in answer.values()) == 0
    holder.commit()
    assert all(due.moved() for due in made)
    assert violations(db) == []


def test_fifty_callers_at_once_do_nothing_twice_and_never_wait(db, connect, clock):
    clock.freeze()
    kinds = [name for name in SWEEPS if name not in ("trim_streams", "trim_retention")]
    made = [due for name in kinds for due in make(db, clock, name, 12)]
    clock.set(max(due.due_ms for due in made))
    conns = [connect() for _ in range(50)]
    start, done, waits = threading.Barrier(51), threading.Event(), []

    def work(conn):
        start.wait()
        return [row for _ in range(10) for row in rows(conn, "ff_tick", limit=5)]

    def watch():
        query = """
            select wait_event, query from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock' and query like '%%ff_tick%%'
               -- PostgreSQL lets those that notify commit one after another, and those that need a new page.
               and wait_event not in ('object', 'extend')
        """
        while not done.wait(0.002):
            waits.extend(table(db, query))

    with ThreadPoolExecutor(51) as pool:
        watching = pool.submit(watch)
        working = [pool.submit(work, conn) for conn in conns]
        start.wait()
        answers = [row for work in working for row in work.result()]
        done.set()
        watching.result()
    left = True
    while left:
        # What a step left because another held it is not due again while the clock stands.
        last = rows(db, "ff_tick", limit=5, force=True)
        answers += last
        left = any(row["more"] for row in last)
    assert waits == []
    assert sum(row["errors"] for row in answers) == 0
    processed = {name: sum(row["processed"] for row in answers if row["step"] == name) for name in kinds}
    # An attempt's lease does not outlive it: it is found as well, unless the timeout was applied before.
    assert 12 <= processed.pop("sweep_expired_leases") <= 24, processed
    assert set(processed.values()) == {12}, processed
    assert all(due.moved() for due in made)
    assert violations(db) == []


def read(db, call):
    """How many rows a call reads, by table, and which tables it scans."""
    query = "select relname, seq_scan, seq_tup_read, coalesce(idx_tup_fetch, 0) as idx from pg_stat_xact_user_tables"
    with db.transaction():
        call()  # plans are made
    with db.transaction():
        before = {row["relname"]: row for row in table(db, query)}
        call()
        after = {row["relname"]: row for row in table(db, query)}
    counted = {
        name: (
            row["seq_tup_read"] - before[name]["seq_tup_read"],
            row["idx"] - before[name]["idx"],
        )
        for name, row in after.items()
    }
    return {name: counts for name, counts in counted.items() if any(counts)}


def fill(db, count):
    """Executions that are ready, delayed, ended, in flows; suspended ones; events of all that. None is due."""
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * count)
    held = rows(
        db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w-1", limit=count // 2
    )
    rows(db, "ff_complete_many", handles=[row["handle"] for row in held])
    later = {"delay_ms": 10**8, "deadline_at_ms": 4 * 10**12}
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * count, **later)


@pytest.mark.own_session("counts what its server process did")
@pytest.mark.parametrize("statistics", ["as they come", "hollow"])
def test_an_idle_tick_reads_a_handful_of_rows_however_many_there_are(db, connect, clock, statistics):
    for count in (0, 200):
        fill(db, count)
        if statistics == "hollow":  # an autoanalyze comes when it comes
            hollow(db)
    few = read(db, lambda: tick(db, force=True))
    for _ in range(5):
        fill(db, 400)
    # Ten thousand rows of a ledger that executions will give back when they have ended.
    budget(db, release_on_terminal=True)
    db.execute("update ff_execution set spends = true where terminal_at_ms is null")
    db.execute(
        "insert into ff_budget_usage_by_exec (budget_id, execution_id, dimension, reset_epoch, delta_total) "
        "select 'b', c.execution_id, 'd' || n, 0, 1 from ff_execution c, generate_series(1, 20) n "
        "where c.spends order by n limit 10000"
    )
    assert len(table(db, "select from ff_budget_usage_by_exec")) == 10_000
    many = read(db, lambda: tick(db, force=True))
    assert "ff_budget_usage_by_exec" not in many
    kept = {"ff_execution", "ff_attempt_past", "ff_event_log", "ff_suspension", "ff_flow_core"}
    assert {name: counts for name, counts in many.items() if name in kept and counts[0]} == {}, "it scans"
    # Of each family of events that is notifications for by tick, the last hundred are looked at.
    assert sum(index for name, (_, index) in many.items() if name in kept) <= 420, many
    assert many.get("ff_execution", (0, 0))[1] <= few.get("ff_execution", (0, 0))[1] + 2
    # Not due at all: nothing but the table of the steps, the families and their last events.
    clock.freeze()
    tick(db)
    idle = read(db, lambda: tick(db))
    assert set(idle) <= {"ff_reconciler", "ff_event_family", "ff_event_log", "test_clock"}


def test_a_tick_with_nothing_due_writes_nothing(db, connect, clock):
    clock.freeze()
    tick(db)
    with db.transaction():
        assert ran(tick(db)) == []
        assert table(db, "select pg_current_xact_id_if_assigned() is null as none") == [{"none": True}]


@pytest.mark.own_session("counts what its server process did")
def test_thousands_of_rows_that_are_backed_off_hide_nothing_and_are_read_once(db, connect, clock):
    """30.7 has them excluded, and asks for no memory of where a scan has been."""
    clock.freeze()
    count = 2000
    for _ in range(2):
        rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * (count // 2), delay_ms=1000)
    clock.advance(1000)
    db.execute(
        "insert into ff_reconciler_error (name, row_key, next_retry_at_ms, attempts, last_error) "
        "select 'sweep_delayed', execution_id::text, ff_now_ms() + 600000, 9, '' from ff_exec_core"
    )
    clock.advance(5000)
    walked = read(db, lambda: sweep(db, "sweep_delayed", limit=2))
    assert walked.get("ff_execution", (0, 0)) <= (0, count + 10)
    behind = create(db, delay_ms=1)
    clock.advance(5000)
    assert sweep(db, "sweep_delayed", limit=2) == (1, 0, False)
    assert execution(db, behind)["public_state"] == "waiting"
    # What becomes due before them is found at once, too.
    before = create(db, delay_ms=10**6)
    db.execute(
        "update ff_execution set delay_until_ms = 1, due_at_ms = 1 where execution_id = %s",
        [before.rsplit(":", maxsplit=1)[-1]],
    )
    assert sweep(db, "sweep_delayed", limit=2) == (1, 0, False)


@pytest.mark.own_session("counts what its server process did")
@pytest.mark.parametrize("policy", [{}, {"retention_ms": 10**6}], ids=["settings", "own"])
def test_retention_reads_no_flow_that_it_does_not_delete(db, connect, clock, policy):
    clock.freeze()

    def end_flow():
        one(db, "ff_complete", handle=begin(db, node(db, flow(db), policy=policy))["handle"])

    end_flow()
    clock.advance(policy.get("retention_ms", 7 * 24 * HOUR) // 2)
    for _ in range(40):
        end_flow()
    walked = read(db, lambda: sweep(db, "trim_retention"))
    # The probes for the classes of flows, which are two here.
    assert walked.get("ff_flow_core", (0, 0)) <= (0, 3), walked
    assert walked.get("ff_execution", (0, 0)) == (0, 0), walked
    clock.advance(policy.get("retention_ms", 7 * 24 * HOUR) // 2)
    assert sweep(db, "trim_retention") == (1, 0, False)
    assert table(db, "select count(*) as n from ff_flow_core") == [{"n": 40}]
    assert violations(db) == []


def test_steps_that_end_members_pass_the_ends_on(db, clock):
    now = clock.freeze()
    fid = flow(db)
    up = node(db, fid, deadline_at_ms=now + 1000)
    down = node(db, fid)
    link(db, fid, up, down, dependency_kind="any_terminal")
    clock.advance(1000)
    assert sweep(db, "sweep_deadlines") == (1, 0, False)
    assert (state(db, up), state(db, down)) == ("expired", "waiting")


def test_an_end_whose_flow_is_busy_is_passed_on_later(db, connect, clock):
    now = clock.freeze()
    fid = flow(db)
    up = node(db, fid, deadline_at_ms=now + 1000)
    down = node(db, fid)
    link(db, fid, up, down, dependency_kind="any_terminal")
    clock.advance(1000)
    with connect(autocommit=False) as other:
        other.execute("select from ff_flow_core where flow_id = %s for update", [fid])
        assert sweep(db, "sweep_deadlines") == (1, 0, False)
        assert (state(db, up), state(db, down)) == ("expired", "waiting_children")
        assert tick(db, only=["dispatch_completions"], force=True)["dispatch_completions"]["processed"] == 0
        other.rollback()
    assert tick(db, only=["dispatch_completions"], force=True)["dispatch_completions"]["processed"] == 1
    assert state(db, down) == "waiting"


def test_a_flow_that_cannot_be_dispatched_is_noted_and_forgotten_when_it_can(db, clock):
    clock.freeze()
    fid = flow(db)
    up, down = node(db, fid), node(db, fid)
    link(db, fid, up, down)
    handle = begin(db, up)["handle"]
    with busy_flows(db):
        one(db, "ff_complete", handle=handle)
    db.execute(
        "create function test_bad() returns trigger language plpgsql as $$ begin raise exception 'bad edge'; end $$"
    )
    db.execute("create trigger bad before update on ff_edge for each row execute function test_bad()")
    assert sweep(db, "dispatch_completions") == (0, 1, False)
    assert errors(db, "dispatch_completions")[str(fid)]["last_error"] == "P0001: bad edge"
    assert sweep(db, "dispatch_completions") == (0, 0, False)
    db.execute("drop trigger bad on ff_edge")
    clock.advance(1000)
    assert sweep(db, "dispatch_completions") == (1, 0, False)
    assert errors(db, "dispatch_completions") == {}
    assert state(db, down) == "waiting"


def test_a_flow_that_cannot_be_projected_does_not_stand_in_front_of_the_others(db, clock):
    clock.freeze()
    flows = []
    for _ in range(3):
        flows.append(flow(db))
        node(db, flows[-1])
        clock.advance(10)
    db.execute(
        "create function test_bad() returns trigger language plpgsql as $$ begin "
        f"if new.flow_id = '{flows[0]}' then raise exception 'bad flow'; end if; return new; end $$"
    )
    db.execute("create trigger bad before insert on ff_flow_summary for each row execute function test_bad()")
    assert [sweep(db, "project_flows", limit=1)[:2] for _ in range(3)] == [(0, 1), (1, 0), (1, 0)]
    db.execute("drop trigger bad on ff_flow_summary")
    assert violations(db) == []
    clock.advance(1000)
    sweep(db, "project_flows", limit=1)
    assert table(db, "select count(*) as n from ff_flow_summary") == [{"n": 3}]
    assert errors(db, "project_flows") == {}


def test_ended_flows_are_projected_once_more_and_then_left_alone_until_they_reopen(db, clock):
    clock.freeze()
    fid = flow(db)
    one(db, "ff_complete", handle=begin(db, node(db, fid))["handle"])
    assert sweep(db, "project_flows")[0] == 1
    clock.advance(60_000)
    assert sweep(db, "project_flows")[0] == 0
    node(db, fid)
    assert sweep(db, "project_flows")[0] == 1
    clock.advance(60_000)
    assert sweep(db, "project_flows")[0] == 1
    assert violations(db) == []


def test_a_cancelled_flow_member_that_cannot_be_ended_is_put_off(db, clock):
    clock.freeze()
    fid = flow(db)
    members = [node(db, fid) for _ in range(3)]
    one(db, "ff_cancel_flow_header", flow_id=fid, policy="cancel_all", grace_ms=1000)
    bad = members[1].rsplit(":", maxsplit=1)[-1]
    spoil(db, f"if new.execution_id = '{bad}' then raise exception 'bad member'; end if;")
    clock.advance(1000)
    assert sweep(db, "drain_cancel_backlog")[:2] == (2, 1)
    assert errors(db, "drain_cancel_backlog")[bad]["last_error"] == "P0001: bad member"
    assert sweep(db, "drain_cancel_backlog")[:2] == (0, 0)
    unspoil(db)
    clock.advance(6000)
    assert sweep(db, "drain_cancel_backlog")[:2] == (1, 0)
    assert {state(db, eid) for eid in members} == {"cancelled"}
    assert errors(db, "drain_cancel_backlog") == {}
    assert violations(db) == []


def test_a_sibling_that_cannot_be_cancelled_is_put_off(db, connect, clock):
    clock.freeze()
    made = [fan_in(db, 2, "any_of") for _ in range(3)]
    with connect(autocommit=False) as other:
        for _, (winner, sibling), _ in made:
            other.execute(EXECUTION, [sibling[-36:]])
            one(db, "ff_complete", handle=begin(db, winner)["handle"])
            clock.advance(1)
    bad = made[0][1][1]
    spoil(db, f"if new.execution_id = '{bad[-36:]}' then raise exception 'bad sibling'; end if;")
    said = [sweep(db, "drain_sibling_cancels", limit=1) for _ in range(4)]
    assert said == [(0, 1, True), (1, 0, True), (1, 0, True), (0, 0, False)]
    (noted,) = errors(db, "drain_sibling_cancels").values()
    assert (noted["attempts"], noted["last_error"]) == (1, "P0001: bad sibling")
    unspoil(db)
    clock.advance(1000)
    assert sweep(db, "drain_sibling_cancels")[:2] == (1, 0)
    assert errors(db, "drain_sibling_cancels") == {}
    assert {state(db, sibling) for _, (_, sibling), _ in made} == {"cancelled"}
    assert violations(db) == []


@pytest.mark.own_session("acts as a role")
def test_the_procedure_commits_after_each_step(db, connect, clock):
    """It hangs in a late step, in a lock of the test's own; what came before is there for all to see."""
    clock.freeze()
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 300, delay_ms=1)
    delayed = "select count(*) as n from ff_exec_core where public_state = 'delayed'"
    (key,) = make(db, clock, "sweep_expired", 1)
    clock.set(key.due_ms)
    db.execute("create table test_gate ()")
    db.execute(
        """
        create function test_hang() returns trigger language plpgsql as
        $$ begin lock table test_gate in access share mode; return old; end $$
        """
    )
    db.execute(
        "create trigger hang before delete on ff_idempotency for each row execute function test_hang()"
    )
    caller = connect()
    caller.execute("set role ff_worker")
    with connect(autocommit=False) as gate, ThreadPoolExecutor(1) as pool:
        gate.execute("lock table test_gate in access exclusive mode")
        calling = pool.submit(caller.execute, "call ff_run_maintenance()")
        until(
            lambda: table(
                db,
                "select from pg_stat_activity where wait_event_type = 'Lock' and query like 'call%%'"
                " and datname = current_database()",
            )
        )
        assert table(db, delayed)[0]["n"] <= 100
        assert not key.moved()
        gate.rollback()
        calling.result(90)
    # A batch is 200: it came back for the rest.
    assert table(db, delayed) == [{"n": 0}]
    assert key.moved()


def test_the_procedure_refuses_a_transaction_and_bad_times(db, connect):
    with pytest.raises(psycopg.errors.InvalidTransactionTermination), db.transaction():
        db.execute("call ff_run_maintenance()")
    for value in (-1, None):
        with refused("invalid_input") as refusal:
            db.execute("call ff_run_maintenance(%s::int)", [value])
        assert refusal.detail["arg"] == "p_max_ms"
    db.execute("call ff_run_maintenance(0)")
    db.execute("call ff_run_maintenance(2147483647)")


@pytest.mark.parametrize("level", list(psycopg.IsolationLevel)[1:])  # the first is the second
def test_every_isolation_level_will_do(db, connect, clock, level):
    clock.freeze()
    kinds = [name for name in SWEEPS if name != "trim_streams"]
    made = [due for name in kinds for due in make(db, clock, name, 2)]
    clock.set(max(due.due_ms for due in made))
    with connect(autocommit=False) as conn:
        conn.isolation_level = level
        # What another caller changed since the snapshot is a serialization failure, for the caller to repeat.
        table(conn, "select count(*) from ff_reconciler")
        tick(db, only=["sweep_delayed"])
        if level >= psycopg.IsolationLevel.REPEATABLE_READ:
            with pytest.raises(psycopg.errors.SerializationFailure):
                tick(conn)
            conn.rollback()
            clock.advance(1000)
        answer = tick(conn, limit=1)
        conn.commit()
        assert sum(row["errors"] for row in answer.values()) == 0
        while any(row["more"] for row in answer.values()):
            answer = tick(conn, limit=1)
            conn.commit()
    assert all(due.moved() for due in made)
    assert violations(db) == []


def test_trims_keep_to_the_setting(db, clock):
    clock.freeze()
    create(db)
    one(db, "ff_complete", handle=take(db)["handle"])
    one(db, "ff_set_setting", name="retention_ms", value="5000")
    clock.advance(4999)
    assert tick(db, only=["trim_retention"], force=True)["trim_retention"]["processed"] == 0
    clock.advance(1)
    assert tick(db, only=["trim_retention"], force=True)["trim_retention"]["processed"] == 1
