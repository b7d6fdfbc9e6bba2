"""Views under migrations that touch what they show."""

import os
import subprocess

import pytest

from pyff.migrate import Status, check, migrate, render_sql, rollback


@pytest.fixture(params=["python", "psql"])
def applied(request, database, release, server_bindir):
    """Brings the database to the release, by `pyff migrate` or by its script."""

    def apply():
        if request.param == "python":
            migrate(database.dsn, db=release.tree, roles=False)
            return
        done = subprocess.run(
            [server_bindir / "psql", "-X", "-f", "-", database.dsn],
            input=render_sql(db=release.tree, roles=False),
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    return apply


def test_a_migration_may_drop_a_view_that_is_in_its_way(applied, database, release):
    release.view("ff_v_thing", "select t.id, t.name from ff_thing t")
    applied()
    release.migration(
        "0002.wider", "drop view if exists ff_v_thing; alter table ff_thing alter column id type bigint;"
    )
    assert check(database.dsn, db=release.tree).status is Status.BEHIND
    applied()
    assert database.rows("table ff_v_thing") == []
    assert check(database.dsn, db=release.tree).status is Status.CURRENT


def test_a_view_follows_a_column_that_is_renamed(applied, database, release):
    release.view("ff_v_thing", "select t.id, t.name from ff_thing t")
    applied()
    release.migration("0002.title", "alter table ff_thing rename column name to title;")
    release.view("ff_v_thing", "select t.id, t.title as name, t.title as title from ff_thing t")
    applied()
    assert database.rows("select name, title from ff_v_thing") == []


def test_a_view_that_is_changed_keeps_its_grants_current(database, release):
    grants = "do $$ begin execute 'grant select on ff_v_thing to pg_monitor'; end $$;"
    release.view("ff_v_thing", "select t.id from ff_thing t").file("grants.sql", grants)
    migrate(database.dsn, db=release.tree)
    query = "select has_table_privilege('pg_monitor', 'ff_v_thing', 'select')"
    for change in ("select t.id, t.name from ff_thing t", "select t.name from ff_thing t"):
        release.view("ff_v_thing", change)
        migrate(database.dsn, db=release.tree)
        assert database.one(query) is True


def test_views_do_not_hold_back_a_rollback(database):
    migrate(database.dsn)
    assert database.one("select count(*) from ff_v_execution") == 0
    rollback(database.dsn, 2)
    assert database.rows(r"select relname from pg_class where relname like 'ff\_v\_%'") == []
    migrate(database.dsn)
    assert database.one("select count(*) from ff_v_execution") == 0
