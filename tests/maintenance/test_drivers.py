"""The callers of ff_tick: pyff maintain, pg_cron, an idle worker."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from pyff.cli import main
from pyff.migrate import migrate
from pyff.postgres import temporary
from tests.maintenance.support import Due, delay, make, poison, spoil, unspoil
from tests.pgbouncer import pooled
from tests.postgres.helpers import until
from tests.sql import create, execution, table, take

pytestmark = pytest.mark.own_session("runs pyff maintain, which connects by itself")

CRON = Path("/usr/share/postgresql/15/extension/pg_cron.control")
BIN15 = Path("/usr/lib/postgresql/15/bin")
DOCUMENT = Path(__file__).parents[2] / "docs" / "maintenance.md"


@pytest.fixture
def maintain(dsn):
    """Starts `pyff maintain`; what still runs at the end is killed."""
    started = []

    def start(*options, **env):
        process = subprocess.Popen(
            [sys.executable, "-m", "pyff", "maintain", *options],
            env={**os.environ, "PYFF_DSN": dsn, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def command(dsn, monkeypatch, capsys):
    """Runs `pyff maintain` in this process until it ends by itself; its exit code and what it printed."""
    monkeypatch.setenv("PYFF_DSN", dsn)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def run(*options):
        try:
            code = main(["maintain", *options])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def backends(db) -> list[int]:
    query = "select pid from pg_stat_activity where application_name = 'pyff maintain' and datname = current_database()"
    return [row["pid"] for row in table(db, query)]


def waiting(db, eid: str) -> bool:
    return bool(execution(db, eid)["public_state"] == "waiting")


def test_once_does_what_is_due_in_as_many_calls_as_it_takes_and_exits(db, clock, command):
    clock.freeze()
    made = make(db, clock, "sweep_delayed", 7)
    clock.set(made[-1].due_ms)
    code, out, err = command("--once", "--limit", "2")
    assert (code, err) == (0, "")
    assert all(due.moved() for due in made)
    assert [line.split(" in ")[0] for line in out.splitlines()] == ["sweep_delayed: 2 processed"] * 3 + [
        "sweep_delayed: 1 processed"
    ]


def test_json_is_one_object_per_step_that_did_something_and_failures_are_told(db, clock, command):
    clock.freeze()
    good, bad = make(db, clock, "sweep_delayed", 2)
    clock.set(bad.due_ms)
    poison(db, bad)
    _, out, _ = command("--once", "--json")
    (line,) = map(json.loads, out.splitlines())
    assert (line["step"], line["processed"], line["errors"]) == ("sweep_delayed", 1, 1)
    clock.advance(1000)
    _, out, _ = command("--once", "--only", "sweep_delayed")
    assert "1 failed (see ff_reconciler_error)" in out
    assert good.moved()


def test_it_runs_until_sigterm_and_survives_a_lost_connection(db, maintain):
    process = maintain("--every", "0.05")
    eid = create(db, delay_ms=1)
    until(lambda: waiting(db, eid))
    (pid,) = backends(db)
    db.execute("select pg_terminate_backend(%s)", [pid])
    until(lambda: backends(db) not in ([], [pid]))
    eid = create(db, delay_ms=1)
    until(lambda: waiting(db, eid))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    assert "sweep_delayed: 1 processed" in out
    assert "connection to the database lost, trying again" in err


INTERRUPTED = """
import signal, sys
from pyff.maintain import Maintenance

for place in range(1000):
    maintenance = Maintenance("")
    signal.signal(signal.SIGTERM, lambda *_: maintenance.stop.set())
    passed = 0

    def trace(frame, event, argument):
        global passed
        if event == "line":
            passed += 1
            if passed == place + 1:
                sys.settrace(None)
                signal.raise_signal(signal.SIGTERM)
        return trace

    sys.settrace(trace)
    maintenance.stop.wait(0.001)
    sys.settrace(None)
    if passed <= place:
        break
    assert maintenance.stop.is_set()
    maintenance.stop.wait(60)
print("all", place)
"""


def test_sigterm_ends_the_pause_at_any_line():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.startswith("all "), done.stderr
    assert int(done.stdout.split()[1]) > 1


def test_sigterm_ends_it_after_the_call_that_is_under_way(db, connect, maintain):
    """The call hangs in a lock of the test's own; the work it did before is kept."""
    db.execute("create table test_gate ()")
    spoil(db, "lock table test_gate in access share mode;")
    eid = create(db, delay_ms=1)
    with connect(autocommit=False) as gate:
        gate.execute("lock table test_gate in access exclusive mode")
        process = maintain("--every", "0.05")
        stuck = (
            "select from pg_stat_activity where application_name = 'pyff maintain' and wait_event_type = 'Lock'"
            " and datname = current_database()"
        )
        until(lambda: table(db, stuck))
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        gate.rollback()
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    assert "sweep_delayed: 1 processed" in out
    assert waiting(db, eid)


def test_calls_that_cannot_be_serialized_do_not_end_it(db, maintain):
    """However often: with a stricter default isolation that is what many drivers at once do to each other."""
    spoil(db, "raise exception using errcode = '40001';")
    eid = create(db, delay_ms=1)
    process = maintain("--every", "0.05")
    assert process.stderr
    assert "trying again" in process.stderr.readline()
    unspoil(db)
    until(lambda: waiting(db, eid))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 0, err


def test_a_database_that_is_not_there_is_waited_for(db, dsn, maintain):
    name = table(db, "select current_database() as name")[0]["name"]
    with psycopg.connect(dsn, dbname="postgres", autocommit=True) as admin:
        admin.execute(f'alter database "{name}" allow_connections false')
        process = maintain("--every", "0.05")
        assert process.stderr
        assert "connection to the database lost, trying again" in process.stderr.readline()
        admin.execute(f'alter database "{name}" allow_connections true')
    until(lambda: backends(db))
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0


@pytest.mark.parametrize(
    ("options", "wanted", "says"),
    [
        (["--only", "sweep_nothing"], 1, "p_only names no step of maintenance"),
        (["--limit", "-1"], 1, "p_limit must be between 0 and 100000"),
        (["--limit", "9" * 20], 2, "--limit"),
        (["--max-ms", "x"], 2, "--max-ms"),
        (["--dsn", "nonsense"], 4, "cannot connect to the database"),
        (["--dsn", "postgresql://u:hidden@[half"], 4, "cannot connect to the database"),
        (["--once", "--dsn", "host=/nowhere"], 4, "cannot connect to the database"),
        (["--every", "0"], 2, "is not between"),
    ],
)
def test_what_it_cannot_do_it_says_in_a_line(db, command, options, wanted, says):
    code, _, err = command(*options)
    assert code == wanted, err
    assert says in err
    assert "hidden" not in err
    assert err.startswith("pyff: ")
    assert "(hint: " in err
    assert err.count("\n") == 1


def test_several_at_once_do_everything_once(db, clock, maintain):
    clock.freeze()
    made: list[Due] = make(db, clock, "sweep_delayed", 30)
    processes = [maintain("--every", "0.02", "--limit", "4") for _ in range(3)]
    until(lambda: len(backends(db)) == 3)
    clock.set(made[-1].due_ms)
    until(lambda: all(due.moved() for due in made), explain=lambda: [due.moved() for due in made])
    for process in processes:
        process.send_signal(signal.SIGTERM)
    told = [process.communicate(timeout=90) for process in processes]
    assert [err for _, err in told] == ["", "", ""]
    counts = [
        int(line.split()[1])
        for out, _ in told
        for line in out.splitlines()
        if line.startswith("sweep_delayed")
    ]
    assert sum(counts) == 30


def test_a_worker_with_nothing_to_do_may_drive_it(db, clock, connect):
    clock.freeze()
    due = delay(db, clock.now(), "default")
    clock.set(due.due_ms)
    with connect() as conn:
        conn.execute("set role ff_worker")
        assert {row["step"]: row["processed"] for row in table(conn, "select * from ff_tick()")}[
            "sweep_delayed"
        ] == 1
    assert take(db)["handle_kind"] == "fresh"


def cron_statements() -> list[str]:
    """The lines of the document that set pg_cron up."""
    text = DOCUMENT.read_text()
    block = text.split("```sql\n-- pg_cron\n", 1)[1].split("```", 1)[0]
    return [statement for statement in block.split(";\n") if statement.strip()]


@pytest.mark.skipif(not CRON.exists(), reason="PostgreSQL 15 with pg_cron is not installed")
def test_the_documented_pg_cron_lines_keep_a_database_maintained(monkeypatch):
    monkeypatch.setenv("PYFF_PG_BIN", str(BIN15))
    settings = {
        "shared_preload_libraries": "pg_cron",
        "cron.database_name": "postgres",
        # Without them pg_cron connects by TCP, which this server does not offer.
        "cron.use_background_workers": True,
        "max_worker_processes": 20,
        "synchronous_commit": True,
        "search_path": "public, ff",
    }
    with temporary(**settings) as server:
        migrate(server.dsn)
        with psycopg.connect(server.dsn, autocommit=True) as db:
            for statement in cron_statements():
                db.execute(statement)
            # The job as documented, but not at the next full minute: when pg_cron starts, which it does after a crash.
            db.execute("select cron.alter_job(jobid, schedule => '@reboot') from cron.job")
            eid = create(db, delay_ms=1)
            (launcher,) = table(
                db, "select pid from pg_stat_activity where backend_type = 'pg_cron launcher'"
            )
            os.kill(launcher["pid"], signal.SIGKILL)
        until(lambda: started_again(server.dsn, launcher["pid"]), 60)
        with psycopg.connect(server.dsn, autocommit=True) as db:
            done = "select status, return_message from cron.job_run_details"
            until(lambda: waiting(db, eid), 30, lambda: table(db, done))
            until(lambda: table(db, done)[0]["status"] == "succeeded", 30, lambda: table(db, done))


def started_again(dsn: str, launcher: int) -> bool:
    """Whether there is another launcher: right after the crash of the first the server still answers."""
    found = "select from pg_stat_activity where backend_type = 'pg_cron launcher' and pid <> %s"
    try:
        with psycopg.connect(dsn) as conn:
            return conn.execute(found, [launcher]).fetchone() is not None
    except psycopg.OperationalError:
        return False


def test_it_goes_on_behind_a_pooler(db, dsn):
    """A statement that was prepared on one server connection is not there on the next."""
    with pooled(dsn) as through:
        process = subprocess.Popen(
            [sys.executable, "-m", "pyff", "maintain", "--every", "0.02", "--dsn", through],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            for n in range(7):  # each is seen by a later call than the one before
                eid = create(db, delay_ms=1)
                until(lambda eid=eid: execution(db, eid)["public_state"] == "waiting")
                assert process.poll() is None, n
        finally:
            process.terminate()
            said = process.communicate(timeout=90)[1]
    assert "prepared statement" not in said
