"""User errors never print a traceback, and have the documented exit codes."""

import os
import signal
import subprocess
import sys
import time

import psycopg
import pytest

from pyff.cli import exits, main
from pyff.cli.progress import Progress
from tests.cli.conftest import assert_one_line
from tests.sql import create


def process(dsn, *args, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "pyff", *args],
        env={**os.environ, "PYFF_DSN": dsn},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("user=unknown_user", "does not exist"),
        ("dbname=nothing_here", "does not exist"),
        ("host=127.0.0.1 port=1", "Connection refused"),
        ("nonsense", "the connection string is malformed"),
        ("postgresql://u:secret@[half", "the connection string is malformed"),
        ("\udcff", "the connection string is malformed"),
    ],
)
def test_a_connection_that_fails_is_exit_code_4(dsn, bare, change, said):
    given = (
        change
        if "=" not in change
        else psycopg.conninfo.make_conninfo(dsn, **dict(p.split("=") for p in change.split()))
    )
    done = bare("ls", "--dsn", given)
    assert done.code == 4
    assert said in done.err
    assert "(hint: " in done.err
    assert "secret" not in done.err
    assert_one_line(done)


def test_a_wrong_password_is_told_without_it():
    error = psycopg.OperationalError(
        'connection failed: FATAL:  password authentication failed for user "anna"\nmore'
    )
    failure = exits.cannot_connect(error)
    assert exits.line(failure).count("\n") == 0
    assert "check the user and the password" in failure.hint
    assert exits.code(failure) == 4


def test_the_database_is_found_by_pyff_dsn_or_the_kept_server(dsn, bare, monkeypatch, tmp_path):
    monkeypatch.setenv("PYFF_DSN", dsn)
    assert bare("lane", "list").code == 0
    monkeypatch.delenv("PYFF_DSN")
    monkeypatch.setenv("PYFF_HOME", str(tmp_path))
    said = bare("lane", "list")
    assert said.code == 4
    assert "pyff server start" in said.err
    assert_one_line(said)


def test_a_login_without_rights_is_exit_code_4(db, dsn, bare):
    db.execute("create role pyff_test_cli login")
    db.execute("create role pyff_test_reader login in role ff_reader")
    try:
        stranger = bare("ls", "--dsn", f"{dsn} user=pyff_test_cli")
        reader = bare("submit", "mail", "--dsn", f"{dsn} user=pyff_test_reader")
        wire = create(db)
        shown = bare("show", wire, "--dsn", f"{dsn} user=pyff_test_reader")
    finally:
        db.execute("drop role pyff_test_cli")
        db.execute("drop role pyff_test_reader")
    for said in (stranger, reader):
        assert said.code == 4
        assert "permission denied" in said.err
        assert_one_line(said)
    assert shown.code == 0


def test_a_read_only_database_and_a_lock_are_told(db, dsn, bare, connect):
    said = bare("submit", "mail", "--dsn", f"{dsn} options='-c default_transaction_read_only=on'")
    assert (said.code, "connect to the primary" in said.err) == (4, True)
    create(db, "mail")
    other = connect(autocommit=False)
    other.execute("select * from ff_lane_registry for update")
    said = bare("lane", "pause", "mail", "--dsn", f"{dsn} options='-c statement_timeout=100'")
    assert said.code == 5
    assert_one_line(said)


def test_an_old_schema_is_exit_code_4(db, pyff):
    db.execute("update ff_schema_state set functions_sha256 = 'old'")
    for args in (["ls"], ["top", "--once"], ["bench"], ["submit", "mail"]):
        assert "(hint: run pyff migrate)" in pyff(*args, code=4).err


def test_the_kinds_of_database_errors_have_their_exit_codes():
    cases = {
        psycopg.errors.AdminShutdown: 4,
        psycopg.errors.TooManyConnections: 4,
        psycopg.OperationalError: 4,
        psycopg.errors.InsufficientPrivilege: 4,
        psycopg.errors.UndefinedTable: 4,
        psycopg.errors.DeadlockDetected: 5,
        psycopg.errors.DivisionByZero: 1,
    }
    for kind, code in cases.items():
        failure = exits.explained(kind("because"))
        assert exits.code(failure) == code, kind
        assert "because" in exits.line(failure)


def test_a_reader_that_has_enough_is_no_error(db, dsn):
    for n in range(3):
        create(db, payload=b"%d" % n)
    one = process(dsn, "sql", "select repeat('x', 200) from generate_series(1, 20000)")
    assert one.stdout.readline()
    one.stdout.close()
    assert one.wait(300) == 141
    assert one.stderr.read() == b""
    one.stderr.close()


def test_ctrl_c_is_exit_code_130_without_a_traceback(db, dsn):
    create(db)
    one = process(dsn, "events", "--follow", "--after", "now")
    # It has read once and waits for more: what it needs is imported, both its connections are idle.
    watching = (
        "select bool_or(query ilike 'listen%') and bool_or(query ilike '%ff_read_events%')"
        " from pg_stat_activity where state = 'idle' and datname = current_database()"
    )
    until = time.monotonic() + 90
    while not db.execute(watching).fetchone()[0]:
        assert time.monotonic() < until
        assert one.poll() is None, one.stderr.read()
        time.sleep(0.05)
    one.send_signal(signal.SIGINT)
    out, err = one.communicate(timeout=90)
    assert (one.returncode, out, err) == (130, b"", b"")


def test_a_server_that_goes_away_is_told_in_one_line(db, dsn):
    one = process(dsn, "sql", "select pg_sleep(60)")
    sleeping = "select pid from pg_stat_activity where query like 'select pg_sleep%' and datname = current_database()"
    until = time.monotonic() + 90
    while not (found := db.execute(sleeping).fetchone()):
        assert time.monotonic() < until
        time.sleep(0.05)
    db.execute("select pg_terminate_backend(%s)", found)
    _, err = one.communicate(timeout=90)
    assert one.returncode == 4
    assert err.count(b"\n") == 1
    assert err.startswith(b"pyff: the connection to the database was lost: ")


def test_a_bar_is_drawn_on_a_terminal_only(capsys):
    with Progress("submitting", 200, shown=True) as bar:
        bar.advance(50)
        assert bar.line(0.5) == "submitting [#######.......................]  25% 50 of 200 100/s"
    drawn = capsys.readouterr().err
    assert drawn.startswith("\rsubmitting [#######")
    assert drawn.endswith("\r\x1b[K")
    with Progress("counting", None, shown=True) as bar:
        bar.advance(1500)
        assert bar.line(1.0) == "counting: 1,500 1,500/s"
    capsys.readouterr()
    with Progress("submitting", 200) as bar:
        bar.advance(50)
    assert capsys.readouterr().err == ""


def test_odd_input_is_refused_without_a_traceback(db, dsn, pyff, bare, monkeypatch):
    wire = create(db)
    binary = [sys.executable, "-m", "pyff"]
    for args in (["sql", "-"], ["cancel", "-"]):
        done = subprocess.run(
            [*binary, *args, "--dsn", dsn], input=b"\xff\x00", capture_output=True, timeout=300, check=False
        )
        assert done.returncode == 1
        assert done.stderr.startswith(b"pyff: ")
        assert done.stderr.count(b"\n") == 1
    assert_one_line(bare("sql", "select 1; \x00 select 2", "--dsn", dsn))
    assert_one_line(bare("sql", "copy ff_setting to stdout", "--dsn", dsn))
    assert_one_line(bare("sql", "select 'infinity'::date", "--dsn", dsn))
    assert pyff("sql", "--json", "select 'NaN'::float8 as x").object == {"x": "nan"}
    assert "\\x1b" in pyff("sql", 'select 1 as x from "a\nb\x1b"', code=4).err
    pyff("submit", "mail", "--policy", '{"a": "\\u0000"}', code=1)
    pyff("submit", "mail", "--priority", 99_999_999_999, code=1)
    pyff("tail", wire, "--attempt", 99_999_999_999, code=1)
    assert bare("submit", "mail", "--policy", '{"a":' * 100_000).code == 2
    assert bare("submit", "mail", "--delay", "999999999999d").code == 2
    assert bare("show", "{fp:7}:" + "-" * 36, "--dsn", dsn).code == 1
    monkeypatch.setattr(sys, "stdin", None)
    for args in (
        ["sql"],
        ["cancel", "-"],
        ["submit", "mail", "--lines"],
        ["keys", "seed", "k", "--secret", "-"],
    ):
        assert main([*args, "--dsn", dsn]) == 1


def test_a_terminal_that_lacks_letters_is_no_error(dsn):
    done = subprocess.run(
        [sys.executable, "-m", "pyff", "sql", "select 'grün …'", "--dsn", dsn],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0
    assert b"gr\\xfcn \\u2026" in done.stdout
