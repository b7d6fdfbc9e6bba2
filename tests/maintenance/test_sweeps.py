"""All sweeps: they process due rows only, in bounded batches, and a failing row does not stop the others."""

import threading

import pytest

from tests.maintenance.support import AT_ONCE, EXECUTION, SWEEPS, errors, make, poison, repair, sweep
from tests.sql import refused, rows, table, violations

every_sweep = pytest.mark.parametrize("name", SWEEPS)


@pytest.fixture(autouse=True)
def frozen(clock):
    clock.freeze()


@pytest.mark.parametrize("name", sorted(SWEEPS.keys() - AT_ONCE))
def test_a_row_is_processed_when_it_is_due_and_not_a_millisecond_before(db, clock, name):
    (due,) = make(db, clock, name, 1)
    clock.set(due.due_ms - 1)
    assert sweep(db, name) == (0, 0, False)
    assert not due.moved()
    clock.set(due.due_ms)
    assert sweep(db, name) == (1, 0, False)
    assert due.moved()
    assert sweep(db, name) == (0, 0, False)
    assert violations(db) == []


@every_sweep
def test_a_batch_takes_the_oldest_up_to_its_limit_and_says_whether_there_is_more(db, clock, name):
    made = make(db, clock, name, 5)
    clock.set(made[-1].due_ms)
    assert sweep(db, name, limit=0) == (0, 0, False)
    assert sweep(db, name, limit=2) == (2, 0, True)
    assert [due.moved() for due in made] == [True, True, False, False, False]
    assert sweep(db, name, limit=2) == (2, 0, True)
    assert sweep(db, name, limit=2) == (1, 0, False)
    assert all(due.moved() for due in made)


@every_sweep
def test_a_limit_out_of_range_is_refused(db, name):
    for limit in (None, -1, 100_001):
        with refused("invalid_input") as refusal:
            rows(db, f"ff_{name}", limit=limit)
        assert refusal.detail["arg"] == "p_limit"


@every_sweep
def test_a_row_that_cannot_be_processed_is_put_off_and_the_others_move_on(db, clock, name):
    made = make(db, clock, name, 5)
    clock.set(made[-1].due_ms)
    bad = made[3]
    poison(db, bad)
    assert sweep(db, name) == (4, 1, False)
    assert [due.moved() for due in made] == [True, True, True, False, True]
    (error,) = errors(db, name).values()
    assert error["row_key"] == bad.key
    assert (error["attempts"], error["next_retry_at_ms"]) == (1, clock.now() + 1000)
    assert error["last_error"] == f"P0001: poison {bad.value}"

    # Not before its time, and twice as long each time.
    assert sweep(db, name) == (0, 0, False)
    for attempt in range(2, 4):
        clock.set(errors(db, name)[bad.key]["next_retry_at_ms"] - 1)
        assert sweep(db, name) == (0, 0, False)
        clock.advance(1)
        assert sweep(db, name) == (0, 1, False)
        error = errors(db, name)[bad.key]
        assert (error["attempts"], error["next_retry_at_ms"]) == (
            attempt,
            clock.now() + 1000 * 2 ** (attempt - 1),
        )

    repair(db, bad)
    clock.set(error["next_retry_at_ms"])
    assert sweep(db, name) == (1, 0, False)
    assert bad.moved()
    assert errors(db, name) == {}
    assert violations(db) == []


@every_sweep
def test_a_bad_row_never_heads_the_batch_again(db, clock, name):
    made = make(db, clock, name, 5)
    clock.set(made[-1].due_ms)
    poison(db, made[0])
    poison(db, made[1])
    said = [sweep(db, name, limit=1) for _ in range(6)]
    assert said == [(0, 1, True), (0, 1, True), (1, 0, True), (1, 0, True), (1, 0, True), (0, 0, False)]
    assert [due.moved() for due in made] == [False, False, True, True, True]


@every_sweep
def test_a_failed_row_that_another_transaction_processed_is_forgotten(db, clock, name):
    (due,) = make(db, clock, name, 1)
    clock.set(due.due_ms)
    poison(db, due)
    assert sweep(db, name)[:2] == (0, 1)
    repair(db, due)
    db.execute("alter table ff_reconciler_error rename to kept")
    db.execute("create table ff_reconciler_error (like kept including all)")
    assert sweep(db, name)[:2] == (1, 0)
    db.execute("drop table ff_reconciler_error")
    db.execute("alter table kept rename to ff_reconciler_error")
    clock.advance(1000)
    processed, failed, _ = sweep(db, name)
    assert (processed, failed) == (0, 0)
    assert errors(db, name) == {}


def hold(conn, name, due):
    """Locks what the sweep would lock for this row."""
    locks = {
        "sweep_waitpoints": "select from ff_execution c join ff_waitpoint w using (execution_id) "
        "where w.waitpoint_id::text = %s for update",
        "sweep_claim_grants": EXECUTION,
        "sweep_terminal_spend": "select from ff_budget b join ff_budget_usage_by_exec l using (budget_id) "
        "where l.execution_id::text = %s for update of b",
    }
    usual = f"select from {due.relation} where {due.column}::text = %s for update"
    conn.execute(locks.get(name, usual), [due.value])


@every_sweep
def test_locked_rows_are_skipped_and_hide_nothing_and_no_caller_waits(db, connect, clock, name):
    made = make(db, clock, name, 6)
    clock.set(made[-1].due_ms)
    with connect(autocommit=False) as other:
        db.execute("set statement_timeout = '20s'")
        for due in made:
            hold(other, name, due)
        assert sweep(db, name, limit=2) == (0, 0, False), "a driver would call again at once"
        other.rollback()
        for due in made[:5]:
            hold(other, name, due)
        assert sweep(db, name, limit=2)[:2] == (1, 0)
        assert [due.moved() for due in made] == [False] * 5 + [True]
        assert sweep(db, name, limit=2) == (0, 0, False)
        other.rollback()
    assert sweep(db, name)[:2] == (5, 0)
    assert all(due.moved() for due in made)


@every_sweep
def test_many_at_once_do_nothing_twice(db, connect, clock, name):
    made = make(db, clock, name, 9)
    clock.set(made[-1].due_ms)
    conns = [connect() for _ in range(3)]
    done = []

    def work(conn):
        while any(said := sweep(conn, name, limit=3)[:2]):
            done.append(said)

    threads = [threading.Thread(target=work, args=(conn,)) for conn in conns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # What was busy when the others looked is still there.
    while any(said := sweep(db, name)[:2]):
        done.append(said)
    assert (sum(n for n, _ in done), sum(n for _, n in done)) == (9, 0)
    assert all(due.moved() for due in made)
    assert violations(db) == []
    assert table(db, "select deadlocks from pg_stat_database where datname = current_database()") == [
        {"deadlocks": 0}
    ]
