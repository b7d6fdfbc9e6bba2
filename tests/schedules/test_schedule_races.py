"""However many fire at once, and whatever dies on the way: one execution per tick."""

import threading

import psycopg
import pytest

from tests.schedules.oracle import utc
from tests.sql import claim, one, rows, table, violations

HOUR = 3_600_000
NOON = utc(2026, 11, 16, 12)


def schedule(db, schedule_id="s", **args):
    args = {"schedule_id": schedule_id, "lane_id": "default", "cron": "@hourly", **args}
    return one(db, "ff_create_schedule", **args)


def together(connections, action):
    """The action on every connection at once; what it returned."""
    barrier = threading.Barrier(len(connections))
    results = []

    def run(conn):
        barrier.wait()
        try:
            results.append(action(conn))
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=run, args=(conn,)) for conn in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_ten_workers_and_a_sweep_fire_each_tick_once(db, connect, clock):
    clock.set(NOON)
    for n in range(4):
        schedule(db, f"s{n}", catch_up="all")
    connections = [connect() for _ in range(10)]
    for _ in range(3):
        clock.advance(HOUR)

        def work(conn):
            one(conn, "ff_fire_schedules", limit=3)
            return claim(conn)

        results = together(connections, work)
        assert not [error for error in results if isinstance(error, BaseException)]
    while one(db, "ff_fire_schedules")["processed"]:
        pass
    found = table(
        db, "select tags ->> 'schedule.id' as id, tags ->> 'schedule.fire_at_ms' as tick from ff_exec_input"
    )
    assert sorted((row["id"], int(row["tick"])) for row in found) == [
        (f"s{n}", NOON + hours * HOUR) for n in range(4) for hours in (1, 2, 3)
    ]
    assert violations(db) == []


@pytest.mark.no_serializable("commits a transaction that others have overtaken")
def test_a_sweep_passes_over_a_schedule_that_another_fires(db, connect, clock):
    clock.set(NOON)
    schedule(db, "a")
    schedule(db, "b", cron="30 * * * *")
    clock.advance(HOUR)
    busy = connect(autocommit=False)
    assert one(busy, "ff_fire_schedules", limit=1)["processed"] == 1
    db.execute("set lock_timeout = '5s'")
    assert one(db, "ff_fire_schedules") == {"processed": 1, "errors": 0, "more": True}
    busy.commit()
    assert one(db, "ff_fire_schedules") == {"processed": 0, "errors": 0, "more": False}
    assert len(table(db, "select 1 as x from ff_exec_core")) == 2


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("policy", [{"quota_policy_id": "q"}, {"budget_ids": ["b"]}], ids=str)
def test_firing_what_needs_admission_does_not_wait_for_its_lane(db, connect, clock, policy, replaced):
    clock.set(NOON)
    one(db, "ff_create_quota_policy", quota_policy_id="q", max_concurrent=1)
    one(db, "ff_create_budget", budget_id="b", dimensions=["t"], hard_limits=[1], soft_limits=[0])
    if replaced:
        schedule(db)
    schedule(db, policy=policy, replace=replaced)
    clock.advance(HOUR)
    busy = connect(autocommit=False)
    one(busy, "ff_set_lane_state", lane_id="default", state="paused")
    db.execute("set lock_timeout = '5s'")
    assert claim(db, lane="other") is None
    assert len(table(db, "select 1 as x from ff_exec_core")) == 1
    busy.rollback()
    assert violations(db) == []


@pytest.mark.own_session("asks the server about its own process")
@pytest.mark.parametrize("end", ["rollback", "killed"])
def test_a_tick_whose_firing_was_undone_is_fired_by_the_next(db, connect, clock, end):
    clock.set(NOON)
    schedule(db)
    clock.advance(HOUR)
    dying = connect(autocommit=False)
    assert one(dying, "ff_fire_schedules")["processed"] == 1
    if end == "rollback":
        dying.rollback()
    else:
        db.execute("select pg_terminate_backend(%s, 10000)", [dying.info.backend_pid])
    assert one(db, "ff_fire_schedules")["processed"] == 1
    assert len(table(db, "select 1 as x from ff_exec_core")) == 1


def test_one_of_many_creators_creates(db, connect, clock):
    clock.set(NOON)
    answers = together([connect() for _ in range(8)], schedule)
    assert sorted(answer["outcome"] for answer in answers) == ["already_satisfied"] * 7 + ["created"]
    assert {answer["next_fire_at_ms"] for answer in answers} == {NOON + HOUR}


def test_many_who_replace_leave_the_definition_of_one(db, connect, clock):
    clock.set(NOON)
    schedule(db)
    connections = [connect() for _ in range(6)]
    minutes = {id(conn): n for n, conn in enumerate(connections)}
    answers = together(
        connections, lambda conn: schedule(conn, cron=f"{minutes[id(conn)]} * * * *", replace=True)
    )
    assert [answer["outcome"] for answer in answers] == ["replaced"] * 6
    assert len(rows(db, "ff_list_schedules")) == 1
    assert violations(db) == []


def test_deleting_and_creating_at_once_ends_in_one_or_none(db, connect, clock):
    clock.set(NOON)
    connections = [connect() for _ in range(6)]
    roles = {id(conn): n % 2 for n, conn in enumerate(connections)}

    def act(conn):
        for _ in range(10):
            if roles[id(conn)]:
                one(conn, "ff_delete_schedule", schedule_id="s")
            else:
                schedule(conn)

    assert together(connections, act) == [None] * 6
    assert len(rows(db, "ff_list_schedules")) <= 1
    assert violations(db) == []


@pytest.mark.parametrize(
    "level",
    [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE],
    ids=lambda level: level.name.lower(),
)
def test_a_snapshot_from_before_the_firing_fires_nothing_again(db, connect, clock, level):
    clock.set(NOON)
    schedule(db)
    clock.advance(HOUR)
    late = connect(autocommit=False)
    late.isolation_level = level
    late.execute("select 1 from ff_schedule")
    assert one(db, "ff_fire_schedules")["processed"] == 1
    with pytest.raises(psycopg.errors.SerializationFailure):
        one(late, "ff_fire_schedules")
    late.rollback()
    assert one(late, "ff_fire_schedules")["processed"] == 0
    late.commit()
    assert len(table(db, "select 1 as x from ff_exec_core")) == 1
