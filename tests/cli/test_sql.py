"""`pyff sql`."""

import os
import pty
import subprocess
import sys

import psycopg

from tests.sql import table


def test_a_statement_is_run_and_its_rows_printed(db, pyff):
    assert pyff("sql", "select 1 as a, 'x\x1b' as b, null as c, '\\xff'::bytea as d").out.splitlines() == [
        "  a  b      c  d",
        "  -  -----  -  ----",
        "  1  x\\x1b     \\xff",
        "(1 row)",
    ]
    assert pyff("sql", "--json", "select 1 as a, '{\"k\": [1]}'::jsonb as b").object == {
        "a": 1,
        "b": {"k": [1]},
    }
    assert pyff("sql", "select 1 where false").out.endswith("(0 rows)\n")
    assert pyff("sql", "create table t (x int); insert into t values (1), (2); table t").out.splitlines()[
        :2
    ] == [
        "CREATE TABLE",
        "INSERT 0 2",
    ]
    assert db.execute("select count(*) from t").fetchone() == (2,)
    assert pyff("sql", text="select '%s' as a").out.splitlines()[2] == "  %s"
    assert pyff("sql", "-", "--json", text="vacuum t").object == {"status": "VACUUM"}


def test_several_statements_are_one_transaction_unless_they_commit_themselves(db, pyff):
    db.execute("create table t (x int)")
    pyff("sql", "insert into t values (1); select 1 / 0", code=1)
    assert table(db, "table t") == []
    pyff("sql", "begin; insert into t values (1); commit; insert into t values (2); select 1 / 0", code=1)
    assert table(db, "table t") == [{"x": 1}]
    said = " ".join(pyff("sql", "--help").out.split())
    assert "runs them in one transaction, unless they commit themselves" in said


def test_wide_and_joining_letters_do_not_shift_the_columns(pyff):
    """As a terminal shows them: a wide one takes two columns, one that joins the letter before it none."""
    said = pyff("sql", "values ('日本', 1), ('e\u0301t', 2), ('plain', 3)").out.splitlines()
    assert said == [
        "  column1  column2",
        "  -------  -------",
        "  日本     1",
        "  e\u0301t       2",
        "  plain    3",
        "(3 rows)",
    ]


def test_a_statement_that_fails_is_told_in_one_line(pyff):
    assert pyff("sql", "selec 1", code=1).err == 'pyff: syntax error at or near "selec"\n'
    assert "run pyff migrate" in pyff("sql", "table nothing", code=4).err
    assert "(hint:" in pyff("sql", "select * from ff_claim('x', 'w', null)", code=1).err
    assert pyff(
        "sql", "select * from ff_cancel_execution('{fp:1}:018f3a2e-7b6c-7d1e-9f00-aabbccddee01')", code=3
    )


def test_without_a_statement_psql_is_opened_and_the_password_kept_out_of_its_arguments(
    dsn, server_bindir, tmp_path
):
    fake = tmp_path / "psql"
    fake.write_text(
        '#!/bin/sh\necho "args: $*"\necho "password: $PGPASSWORD"\n'
        f'exec {server_bindir}/psql "$@" -Atc "select 6 * 7"\n'
    )
    fake.chmod(0o755)
    master, slave = pty.openpty()
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pyff",
            "sql",
            "--dsn",
            psycopg.conninfo.make_conninfo(dsn, password="hidden"),
        ],
        stdin=slave,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=False,
    )
    os.close(master)
    os.close(slave)
    assert run.returncode == 0, run.stderr
    arguments, password, answer = run.stdout.splitlines()
    assert "hidden" not in arguments
    assert (password, answer) == ("password: hidden", "42")
