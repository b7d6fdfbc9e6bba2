"""A database to which the yoyo command applied the migrations: `pyff migrate` goes on from there."""

import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from psycopg.conninfo import conninfo_to_dict

from pyff.migrate import MigrateError, Status, check, migrate, render_sql
from pyff.migrate.tree import shipped


def yoyo(verb, database, root):
    """Runs the yoyo command as it comes, on the private schema."""
    database.rows("create schema if not exists ff")
    parts = conninfo_to_dict(database.dsn)
    where = f"host={quote(parts['host'], safe='')}&port={parts['port']}"
    done = subprocess.run(
        [
            Path(sys.executable).with_name("yoyo"),
            verb,
            "--batch",
            "--no-config-file",
            "--database",
            f"postgresql+psycopg://{parts['user']}@/{parts['dbname']}?{where}&schema=ff",
            str(root / "migrations"),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done


@pytest.fixture
def by_psql(server_bindir, tmp_path):
    def run(dsn, tree):
        script = tmp_path / "install.sql"
        script.write_text(render_sql(db=tree))
        done = subprocess.run(
            [server_bindir / "psql", "-X", dsn, "-f", script], check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    return run


def test_the_real_tree_applied_by_yoyo_is_adopted(empty):
    by_yoyo, fresh = empty(), empty()
    yoyo("apply", by_yoyo, shipped().root)
    assert check(by_yoyo.dsn).status is Status.NOT_INSTALLED
    report = migrate(by_yoyo.dsn)
    assert (report.applied, report.functions_applied) == ((), True)
    assert check(by_yoyo.dsn).status is Status.CURRENT
    migrate(fresh.dsn)
    recorded = "select version, migration, sha256 from ff_schema_version order by version"
    assert by_yoyo.rows(recorded) == fresh.rows(recorded)
    assert by_yoyo.one("select ok from ff_ping()")


def test_what_yoyo_applied_to_an_installation_is_adopted(database, release):
    migrate(database.dsn, db=release.tree)
    release.migration("0002.more", "create table ff_more (id int);").function(
        "ff_x", body="select count(*)::int from ff_more"
    )
    yoyo("apply", database, release.root)
    release.migration("0003.last", "create table ff_last (id int);")
    report = migrate(database.dsn, db=release.tree)
    assert (report.applied, report.functions_applied) == (("0003.last",), True)
    assert database.one("select ff_x()") == 0
    assert check(database.dsn, db=release.tree).status is Status.CURRENT


def test_the_script_adopts_it_too(database, release, by_psql):
    release.migration(
        "0002.index",
        "-- transactional: false\ndrop index concurrently if exists ff_i;\n"
        "create index concurrently ff_i on ff_thing (name);",
        "drop index ff_i;",
    )
    yoyo("apply", database, release.root)
    by_psql(database.dsn, release.tree)
    assert check(database.dsn, db=release.tree).status is Status.CURRENT
    by_psql(database.dsn, release.tree)
    assert migrate(database.dsn, db=release.tree).applied == ()


def test_what_yoyo_rolled_back_is_refused_until_the_advice_is_followed(database, release):
    release.migration("0002.more", "create table ff_more (id int);", "drop table ff_more;")
    migrate(database.dsn, db=release.tree)
    database.rows("drop table ff_more; delete from _yoyo_migration where migration_id = '0002.more'")
    with pytest.raises(MigrateError, match=r"disagree about 0002\.more") as refused:
        migrate(database.dsn, db=release.tree)
    advice = "delete from \"ff\".ff_schema_version where migration in ('0002.more')"
    assert advice in refused.value.hint
    database.rows(advice)
    assert migrate(database.dsn, db=release.tree).applied == ("0002.more",)
    assert check(database.dsn, db=release.tree).status is Status.CURRENT
