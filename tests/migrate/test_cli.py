"""`pyff migrate`, as a command."""

import json
import os
import subprocess
import sys

import pytest

from pyff.migrate import migrate, render_sql


@pytest.fixture
def pyff(tmp_path):
    def run(*arguments, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYFF_", "PG"))}
        home = {"PYFF_HOME": str(tmp_path / "home")}
        return subprocess.run(
            [sys.executable, "-m", "pyff", "migrate", *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            env={**clean, **home, **environment},
        )

    return run


def test_check_exits_with_1_until_the_schema_is_current(pyff, database):
    before = pyff("--check", "--dsn", database.dsn)
    assert before.returncode == 1
    assert "not installed" in before.stdout
    assert before.stdout.count("\n") == 1
    done = pyff(PYFF_DSN=database.dsn)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("schema public is at version ")
    assert "nothing to do" in pyff("--dsn", database.dsn).stdout
    after = pyff("--check", "--json", "--dsn", database.dsn)
    assert after.returncode == 0
    assert json.loads(after.stdout)["status"] == "current"


def test_a_rollback_wants_to_be_confirmed(pyff, database):
    applied = migrate(database.dsn).applied
    refused = pyff("--rollback-to", 0, "--dsn", database.dsn)
    assert refused.returncode == 1
    assert "deletes the data" in refused.stderr
    assert database.one("select count(*) from ff_schema_version") == len(applied)
    done = pyff("--rollback-to", 0, "--yes", "--json", "--dsn", database.dsn)
    assert json.loads(done.stdout) == {"undone": list(reversed(applied))}


def test_sql_is_printed_without_a_database(pyff):
    assert pyff("--sql").stdout == render_sql()
    assert pyff("--sql", "--no-roles").stdout == render_sql(roles=False)


def test_a_failure_is_told_without_a_traceback(pyff):
    failed = pyff("--dsn", "host=/nonexistent")
    assert failed.returncode == 4
    assert failed.stderr.startswith("pyff: cannot connect")
    assert "Traceback" not in failed.stderr


def test_without_a_dsn_and_a_server_it_says_what_to_do(pyff):
    failed = pyff()
    assert failed.returncode == 4
    assert "PYFF_DSN" in failed.stderr
