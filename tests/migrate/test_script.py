"""`pyff migrate --sql`: the same installation, by psql."""

import subprocess

import pytest

from pyff.migrate import Status, check, migrate, render_sql

AWKWARD = r"""
create or replace function ff_x(p_n int default 1) returns text language plpgsql
set search_path from current as $file$
begin
    return $file1$ '" \d :pyff_do :'x' %s %% {} é $file1$ || (array[1, 2, 3])[1:p_n]::text;  -- \echo no
end
$file$;
"""


@pytest.fixture
def psql(server_bindir):
    def run(dsn, script, path, *, stdin=False):
        path.write_text(script, encoding="utf-8")
        command = [server_bindir / "psql", "-X", dsn, *([] if stdin else ["-f", path])]
        with path.open("rb") as file:
            return subprocess.run(
                command, check=False, stdin=file, capture_output=True, text=True, env={"LC_ALL": "C"}
            )

    return run


@pytest.fixture
def install(psql, tmp_path):
    def run(dsn, tree=None, *, stdin=False, **place):
        return psql(dsn, render_sql(db=tree, **place), tmp_path / "install.sql", stdin=stdin)

    return run


def silent(done):
    return (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("stdin", [False, True], ids=["file", "stdin"])
def test_the_real_tree_is_the_same_by_psql_and_by_python(empty, install, dump, stdin):
    by_psql, by_python = empty(), empty()
    done = install(by_psql.dsn, stdin=stdin)
    assert silent(done), done
    migrate(by_python.dsn)
    assert dump(by_psql.dsn) == dump(by_python.dsn)
    keys = "select kid, active from ff_list_waitpoint_hmac_kids()"
    assert by_psql.rows(keys) == by_python.rows(keys) == [("migrate", True)]
    assert check(by_psql.dsn).status is Status.CURRENT
    assert migrate(by_psql.dsn).applied == ()
    assert silent(install(by_psql.dsn, stdin=stdin))
    assert silent(install(by_python.dsn, stdin=stdin))
    assert dump(by_psql.dsn) == dump(by_python.dsn)


def test_the_script_upgrades_what_either_way_installed(empty, release, install, dump):
    release.function("ff_gone").function("ff_y", arguments="p_a int").view("ff_v_x", "select 1 as a, 2 as b")
    release.file("nouns/ff_x.sql", AWKWARD)
    by_psql, by_python = empty(), empty()
    assert silent(install(by_psql.dsn, release.tree))
    migrate(by_python.dsn, db=release.tree)
    release.remove("nouns/ff_gone.sql").function("ff_y", arguments="p_b int").view("ff_v_x", "select 2 as b")
    release.migration("0002.more", "create table ff_more (id int); insert into ff_more values (1);")
    release.migration(
        "0003.index",
        "-- transactional: false\ncreate index concurrently ff_i on ff_thing (name);",
        "drop index ff_i;",
    )
    for database in (by_psql, by_python):
        done = install(database.dsn, release.tree)
        assert silent(done), done
        assert check(database.dsn, db=release.tree).status is Status.CURRENT
    assert dump(by_psql.dsn) == dump(by_python.dsn)
    assert by_psql.one("select ff_x(2)") == r""" '" \d :pyff_do :'x' %s %% {} é {1,2}"""


def test_the_script_installs_into_the_schemas_it_was_made_for(database, release, install):
    database.rows("create schema app")
    place = {"schema": "app", "private_schema": "behind"}
    for _ in range(2):
        assert silent(install(database.dsn, release.function("ff_x").tree, **place))
    assert database.one("select app.ff_x()") == 1
    assert check(database.as_(search_path="app"), db=release.tree).status is Status.CURRENT
    refused = install(database.dsn, release.tree, schema="app")
    assert "schema app have their tables in schema behind, not in ff" in refused.stderr


@pytest.mark.parametrize("change", ["edited", "newer", "newer functions"])
def test_the_script_refuses_what_migrate_refuses(database, release, install, change):
    release.migration("0002.more", "create table ff_more (id int);").function("ff_x")
    migrate(database.dsn, db=release.tree)
    if change == "edited":
        release.migration("0002.more", "create table ff_changed (id int);")
    elif change == "newer":
        for file in (release.root / "migrations").glob("0002*"):
            file.unlink()
    else:
        database.rows("update ff_schema_state set pyff_version = '999.0'")
        release.function("ff_x", body="select 2")
    done = install(database.dsn, release.tree)
    assert done.returncode == 3
    assert ("999.0" if change == "newer functions" else "0002.more") in done.stderr
    assert database.one("select ff_x()") == 1


def test_a_failing_migration_stops_the_script_and_is_undone(database, release, install):
    release.migration("0002.bad", "create table ff_half (id int); select 1/0;").function("ff_x")
    done = install(database.dsn, release.tree)
    assert done.returncode == 3
    assert "division by zero" in done.stderr
    assert database.rows("select to_regclass('ff_half'), to_regproc('ff_x')") == [(None, None)]
    assert database.one("select max(version) from ff_schema_version") == 1


def test_the_script_does_not_run_beside_another_migration(database, release, install):
    with database.connect(autocommit=False) as other:
        other.execute("select pg_advisory_xact_lock(hashtext('pyff ff'), 1)")
        done = install(database.dsn, release.tree)
    assert done.returncode == 3
    assert "another migration of this schema is running" in done.stderr


def test_the_script_creates_roles_only_if_it_is_asked_to(release):
    assert "create role" in render_sql(db=release.tree)
    assert "create role" not in render_sql(roles=False, db=release.tree)


def test_the_script_does_not_install_in_front_of_an_installation_either(database, release, install):
    migrate(database.dsn, db=release.tree)
    database.rows("create schema jobs")
    place = {"schema": "jobs", "private_schema": "behind"}
    done = install(database.as_(search_path="jobs, public"), release.tree, **place)
    assert done.returncode == 3
    assert "pyff is installed in schema public" in done.stderr
    assert silent(install(database.as_(search_path="jobs"), release.tree, **place))
