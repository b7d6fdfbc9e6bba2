"""Migrations that are killed, run concurrently or fail: the next run completes them."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from psycopg.conninfo import make_conninfo

from pyff.migrate import MigrateError, Status, check, migrate, statements
from pyff.migrate.backend import Backend
from pyff.migrate.place import Place

CONCURRENT_INDEX = """\
-- transactional: false
drop index concurrently if exists ff_thing_name;
create index concurrently ff_thing_name on ff_thing (name);
"""


@pytest.fixture
def large(release):
    for n in range(2, 8):
        release.migration(
            f"{n:04}.t{n}", f"create table ff_t{n} (id int primary key); select pg_sleep(0.01);"
        )
    for n in range(40):
        release.function(f"ff_f{n}")
    release.file("grants.sql", "revoke all on all functions in schema public from public;")
    return release


@pytest.mark.slow("kills processes")
def test_a_run_killed_at_any_moment_leaves_a_database_that_the_next_run_completes(empty, large, runner, dump):
    undisturbed = empty()
    began = time.monotonic()
    migrate(undisturbed.dsn, db=large.tree)
    duration = time.monotonic() - began
    for _ in range(5):
        database = empty()
        for _ in range(3):
            process = runner.start(database.dsn, large.root)
            runner.go(process)
            time.sleep(random.uniform(0, duration))
            process.kill()
            process.wait()
        migrate(database.dsn, db=large.tree)
        assert dump(database.dsn) == dump(undisturbed.dsn)


def test_a_migration_and_the_record_of_it_are_one_transaction(database, release, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(statements, "RECORD", "select 1/0, %s, %s, %s")
        with pytest.raises(MigrateError, match=r"0001\.core: division by zero"):
            migrate(database.dsn, db=release.tree)
    assert database.one("select to_regclass('ff_thing')") is None
    assert database.rows("table _yoyo_migration") == []
    assert migrate(database.dsn, db=release.tree).applied == ("0001.core",)


def test_the_last_statement_of_a_killed_run_may_still_be_at_work(database, release, runner):
    """It waits for a lock that this test has. A backend does not notice the end of its client while it waits."""
    release.migration("0002.slow", "create table ff_slow (id int); select pg_advisory_xact_lock_shared(7);")
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as pool, database.connect() as gate:
        gate.execute("select pg_advisory_lock(7)")
        process = runner.start(database.dsn, release.root)
        runner.go(process)
        while database.one(waiting) < 1:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.kill()
        process.wait()
        assert database.one(waiting) == 1
        again = pool.submit(migrate, database.dsn, db=release.tree)
        while database.one(waiting) < 2:
            assert not again.done(), again.result()
            time.sleep(0.02)
        gate.execute("select pg_advisory_unlock(7)")
        assert again.result(90).applied == ("0002.slow",)


def test_the_commit_of_a_killed_run_may_come_after_its_guard_is_gone(database, release):
    """Its transaction is played by a second backend, which like it has no guard any more."""
    migrate(database.dsn, db=release.tree)
    release.migration("0002.slow", "create table ff_slow (id int); select pg_sleep(0.5);")

    def apply(_):
        with Backend.connect_to(database.dsn, Place()) as backend:
            return backend.apply(release.tree, release.tree.migrations[1])

    with ThreadPoolExecutor() as pool:
        assert sorted(pool.map(apply, range(2))) == [False, True]


def test_six_runs_at_once_on_an_empty_database_apply_everything_once(database, large, runner):
    processes = [runner.start(database.dsn, large.root) for _ in range(6)]
    for process in processes:
        runner.go(process)
    outputs = [process.communicate(timeout=90) for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, outputs
    assert sorted(int(out) for out, _ in outputs) == [0, 0, 0, 0, 0, 7]
    assert database.one("select count(*) from _yoyo_log") == 7


def test_runs_that_wait_do_not_hold_up_an_index_that_is_built_concurrently(database, release, runner):
    release.migration("0002.index", CONCURRENT_INDEX, "drop index ff_thing_name;")
    processes = [runner.start(database.dsn, release.root) for _ in range(4)]
    for process in processes:
        runner.go(process)
    outputs = [process.communicate(timeout=90) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outputs
    assert database.one("select indisvalid from pg_index where indexrelid = 'ff_thing_name'::regclass")


def test_a_migration_without_a_transaction_can_be_repeated_after_a_crash(database, release):
    release.migration("0002.index", CONCURRENT_INDEX, "drop index ff_thing_name;")
    migrate(database.dsn, db=release.tree)
    database.rows(
        "delete from ff_schema_version where version = 2;"
        "delete from _yoyo_migration where migration_id = '0002.index'"
    )
    assert migrate(database.dsn, db=release.tree).applied == ("0002.index",)


def test_what_yoyo_left_of_a_lock_is_in_nobodys_way(database, release):
    database.rows(
        "create schema ff; create table ff.yoyo_lock (locked int primary key, ctime timestamp, pid int);"
        "insert into ff.yoyo_lock values (1, now(), 1)"
    )
    assert migrate(database.dsn, db=release.tree).applied == ("0001.core",)


def test_a_migration_that_fails_is_undone_and_those_before_it_stay(database, release):
    release.migration("0002.good", "create table ff_good (id int);")
    release.migration(
        "0003.bad", "create table ff_half (id int); insert into ff_thing values (1, 'a'), (1, 'b');"
    )
    with pytest.raises(
        MigrateError, match=r"0003\.bad: duplicate key value .*\(Key \(id\)=\(1\) already exists"
    ):
        migrate(database.dsn, db=release.tree)
    assert database.rows("select to_regclass('ff_half'), to_regclass('ff_good')::text") == [(None, "ff_good")]
    release.migration("0003.bad", "create table ff_half (id int);")
    assert migrate(database.dsn, db=release.tree).applied == ("0003.bad",)


def test_a_table_in_use_is_not_waited_for_endlessly(database, release, monkeypatch):
    migrate(database.dsn, db=release.tree)
    monkeypatch.setattr(statements, "BEGIN_STEP", statements.BEGIN_STEP.replace("'10s'", "'100ms'"))
    release.migration("0002.alter", "alter table ff_thing add column more int;")
    with database.connect(autocommit=False) as user:
        user.execute("select * from ff_thing")
        with pytest.raises(
            MigrateError, match=r"0002\.alter: canceling statement due to lock timeout"
        ) as refused:
            migrate(database.dsn, db=release.tree)
        assert "try again" in refused.value.hint
    assert migrate(database.dsn, db=release.tree).applied == ("0002.alter",)


def test_migrations_of_several_databases_of_one_server_create_the_roles_together(
    empty, other_server, release, runner
):
    release.migration("0002.slow", "select pg_sleep(0.3);")
    databases = [empty(on=other_server.dsn) for _ in range(4)]
    processes = [runner.start(database.dsn, release.root) for database in databases]
    for process in processes:
        runner.go(process)
    outputs = [process.communicate(timeout=90) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outputs
    assert databases[0].one(r"select count(*) from pg_roles where rolname like 'ff\_%'") == 6


@pytest.mark.parametrize("where", ["a migration", "the functions"])
def test_a_migration_that_gives_way_in_a_deadlock_is_tried_again(database, release, where):
    """A caller has the second table and waits for the first, which the release has already."""
    release.migration("0002.more", "create table ff_more (id int);", "drop table ff_more;")
    migrate(database.dsn, db=release.tree)
    # Between the two it waits, while the caller has its lock, until the caller waits for the first table.
    meet = """
        do $$ begin
            while not pg_try_advisory_xact_lock_shared(7)
                  and not exists (select from pg_locks l where l.relation = 'ff_thing'::regclass and not l.granted) loop
                perform pg_sleep(0.01);
            end loop;
        end $$;"""
    first, second = (
        f"alter table {name} add column if not exists a int;" for name in ("ff_thing", "ff_more")
    )
    both = first + meet + second
    if where == "a migration":
        release.migration("0003.both", both)
    else:
        release.file("98_rules.sql", both)
    impatient = make_conninfo(database.dsn, options="-cdeadlock_timeout=50ms")
    with ThreadPoolExecutor(1) as pool, database.connect(autocommit=False) as caller:
        caller.execute("set deadlock_timeout = '90s'")
        caller.execute("select pg_advisory_xact_lock(7)")
        caller.execute("select from ff_more")
        migrating = pool.submit(migrate, impatient, db=release.tree)
        holds = (
            "select 1 from pg_locks l where l.relation = 'ff_thing'::regclass and l.mode = 'AccessExclusiveLock'"
            " and l.granted"
        )
        while not database.rows(holds):
            assert not migrating.done()
        caller.execute("select from ff_thing")  # only a deadlock lets it through
        caller.commit()
        report = migrating.result(90)
    assert report.applied == (("0003.both",) if where == "a migration" else ())
    assert check(database.dsn, db=release.tree).status is Status.CURRENT
    assert database.one("select count(*) from pg_attribute where attname = 'a' and not attisdropped") == 2
