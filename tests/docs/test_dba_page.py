"""The page for DBAs, from its first command to its last, on a server of its own."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pyff.postgres import find, temporary
from tests.docs.test_documents import ROOT
from tests.sql import one, refused, rows, table, violations

PAGE = ROOT / "docs" / "dba.md"
PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")


def sections():
    """Heading -> its blocks as (language, text), in the order of the page."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:]:
        heading, _, text = part.partition("\n")
        found[heading] = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    return found


class Page:
    """Runs the blocks of a section as they stand: SQL in psql, the rest in a shell, in one directory."""

    def __init__(self, directory, server, other):
        self.directory, self.server = directory, server
        binaries = find()
        self.account = binaries.account
        place = conninfo_to_dict(server.dsn)
        scripts = Path(sys.executable).parent
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PG", "PYFF"))},
            **binaries.env,
            "PATH": f"{server.bindir}:{scripts}:{os.environ['PATH']}",
            "PGHOST": place["host"],
            "PGPORT": str(place["port"]),
            "PGUSER": place["user"],
            "OTHER": other.dsn,
        }
        self.sections = sections()
        self.ran = []

    def run(self, heading, *, only=None):
        """All blocks of the section, or those of one language; what each has said."""
        said = []
        for language, text in self.sections[heading]:
            if only and language != only:
                continue
            assert language in ("sh", "sql"), f"a block of {heading} that is not run"
            said.append(self.block(language, text))
            self.ran.append((heading, language, text))
        assert said, heading
        return said

    def block(self, language, text):
        psql = ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", "app"]
        # What makes or starts a data directory must not be run by root.
        lesser = self.account.dropped and language == "sh" and re.search(r"pg_ctl|pg_basebackup", text)
        done = subprocess.run(
            psql if language == "sql" else ["bash", "-eu", "-o", "pipefail", "-c", text],
            input=text if language == "sql" else "",
            env=self.env,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **({"user": self.account.uid, "group": self.account.gid, "extra_groups": []} if lesser else {}),
        )
        log = self.directory / "copy.log"
        said = log.read_text() if log.exists() else ""
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}\n{said}"
        return done.stdout + done.stderr

    def connect(self, **changes):
        return psycopg.connect(make_conninfo(self.server.dsn, dbname="app", **changes), autocommit=True)


@pytest.fixture(scope="module")
def page():
    # A copy that recovers must allow as many connections as the original, and this is PostgreSQL's default.
    settings = {"archive_mode": "on", "max_connections": 100}
    with temporary(**settings, autovacuum=False) as server, temporary(autovacuum=False) as other:
        directory = server.directory / "page"
        archive = directory / "archive"
        account = find().account
        for made in (directory, archive):
            made.mkdir(mode=0o755)
            account.give(made)
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute(f"alter system set archive_command = 'cp %p {archive}/%f'")
            # A copy of the data directory listens beside the original.
            conn.execute(f"alter system set unix_socket_directories = '{server.directory}'")
            conn.execute("alter system set listen_addresses = ''")
            conn.execute("select pg_reload_conf()")
        yield Page(directory, server, other)


@pytest.mark.slow("builds environments")
def test_the_page_runs_from_its_first_command_to_its_last(page):
    version, *_ = reversed(page.run("Installing without pyff"))
    assert re.search(r"\d+ \| \d{4}\.", version)
    page.run("Roles")
    with page.connect(user="dashboard") as conn:
        assert table(conn, "select * from ff_v_stuck") == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("select from ff.ff_exec_core")

    looked, indexed, _ = page.run("What each view answers")
    assert looked.count("completed") >= 3
    assert "welcome" in looked
    assert "(0 rows)" in looked
    assert "CREATE INDEX" in indexed
    (sound,) = page.run("Is everything sound?")
    assert "(0 rows)" in sound
    (sizes,) = page.run("Sizing")
    assert "ff_execution" in sizes
    settings, altered = page.run("Autovacuum")
    assert "fillfactor=70" in settings
    assert "ALTER SYSTEM" in altered
    held, _, bounded = page.run("What holds back vacuum, and who waits for whom")
    assert "holds_back" in held
    assert bounded.count("ALTER ROLE") == 2

    settings, trimmed, shrunk = page.run("Retention")
    assert "43200000" in settings
    assert "processed" in trimmed
    assert "VACUUM" in shrunk
    assert "REINDEX" in shrunk

    with page.connect() as conn:
        rows(conn, "ff_create_executions", lane_id="mail", payloads=[b""] * 30)
        rows(conn, "ff_claim_many", lane_id="mail", worker_id="w", worker_instance_id="w-1", limit=10)
    paused, seen, stopped = page.run("Stopping a runaway lane")
    assert "paused" in paused
    assert seen.count("w-1") == 10
    assert re.findall(r"^ +(\d+)$", stopped, re.M) == ["10", "30"]
    with page.connect() as conn:
        states = table(conn, "select public_state, count(*) as n from ff_v_execution group by 1 order by 1")
        assert states == [{"public_state": "cancelled", "n": 30}, {"public_state": "completed", "n": 1}]

    (keys,) = page.run("Rotating the keys of waitpoint tokens")
    assert "key-2026-02" in keys

    backups(page)
    page.run("Upgrading")
    page.run("Removing it")
    with page.connect() as conn:
        assert table(conn, "select relname from pg_class where relname like 'ff\\_%%'") == []
    everything = sum(len(found) for found in page.sections.values())
    pooler = page.sections["PgBouncer"]
    assert len(page.ran) == everything - len(pooler), "a block of the page was not run"


def backups(page):
    """The section on backups, block by block, with a look at what each has brought."""
    blocks = [text for _, text in page.sections["Backup and restore"]]
    dump, restore, base, recover = blocks
    with page.connect() as conn:
        before = table(conn, "select execution_id, public_state from ff_v_execution order by 1")
        read = rows(conn, "ff_read_events", limit=1000)
        cursor = read[-1]["cursor"]
    assert len(before) == 31

    page.block("sh", dump)
    # Up to the rebase: a database in another cluster says that it is needed.
    done, rest = restore.split("psql -X -v", 1)
    page.block("sh", done)
    with psycopg.connect(make_conninfo(page.env["OTHER"], dbname="app"), autocommit=True) as conn:
        with refused("event_generation_stale"):
            rows(conn, "ff_read_events")
        page.block("sh", "psql -X -v" + rest)
        assert table(conn, "select execution_id, public_state from ff_v_execution order by 1") == before
        again = rows(conn, "ff_read_events", limit=1000)
        assert [event["event_id"] for event in again] == [event["event_id"] for event in read]
        assert rows(conn, "ff_read_events", after=cursor) == []
        goes_on(conn, cursor)

    page.block("sh", base)
    with page.connect() as conn:
        waiting = "select count(*) as n from pg_ls_archive_statusdir() where name like '%%.ready'"
        deadline = time.monotonic() + 90
        while table(conn, waiting)[0]["n"] and time.monotonic() < deadline:
            time.sleep(0.01)
    stay, stop = recover.rsplit("pg_ctl", 1)
    try:
        page.block("sh", stay)
        with page.connect(port="5433") as conn:
            assert table(conn, "select execution_id, public_state from ff_v_execution order by 1") == before
            goes_on(conn, cursor)
        with page.connect() as conn:
            assert table(conn, "select count(*) as n from ff_v_execution") == [{"n": 32}]
    finally:
        page.block("sh", "pg_ctl" + stop)
    page.ran += [("Backup and restore", "sh", text) for text in blocks]


def goes_on(conn, cursor):
    """The restored engine works, and a subscriber with an old cursor gets what is new."""
    one(conn, "ff_create_execution", lane_id="later")
    lease = one(conn, "ff_claim", lane_id="later", worker_id="w", worker_instance_id="w-1")
    one(conn, "ff_complete", handle=lease["handle"])
    deadline = time.monotonic() + 90
    while one(conn, "ff_event_lag")["held_back"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [
        (event["family"], event["event_type"]) for event in rows(conn, "ff_read_events", after=cursor)
    ] == [
        ("lease", "acquired"),
        ("lease", "released"),
        ("completion", "success"),
    ]
    assert violations(conn) == []


@pytest.mark.slow("builds environments")
@pytest.mark.skipif(not PGBOUNCER, reason="pgbouncer is not installed")
def test_the_pooler_of_the_page_serves_the_engine(page):
    (_, settings), (_, command) = page.sections["PgBouncer"]
    page.block("sh", "createdb app 2>/dev/null || true")
    page.block("sh", 'pyff migrate --dsn "dbname=app"')
    place = conninfo_to_dict(page.server.dsn)
    settings = settings.replace(
        "host=127.0.0.1 port=5432", f"host={place['host']} port={place['port']} user={place['user']}"
    )
    (page.directory / "users.txt").write_text(f'"{place["user"]}" ""\n')
    who = (
        {"user": page.account.uid, "group": page.account.gid, "extra_groups": []}
        if page.account.dropped
        else {}
    )
    for _ in range(20):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = str(probe.getsockname()[1])
        (page.directory / "pgbouncer.ini").write_text(settings.replace("6432", port) + "unix_socket_dir =\n")
        with subprocess.Popen(
            [PGBOUNCER, page.directory / "pgbouncer.ini"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=page.directory,
            **who,
        ) as pooler:
            try:
                if answers(pooler, host="127.0.0.1", port=port, user=place["user"], dbname="app"):
                    assert "t  |" in page.block("sh", command.replace("6432", port))
                    return
            finally:
                pooler.terminate()
                pooler.wait()
    raise AssertionError("the pooler did not start with any of 20 ports")


def answers(pooler, **place):
    """Whether it takes connections; if it ended instead, another process may have taken its port."""
    deadline = time.monotonic() + 90
    while pooler.poll() is None:
        try:
            psycopg.connect(prepare_threshold=None, **place).close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return True
    return False


def test_the_views_of_the_page_are_those_that_exist(db):
    said = re.findall(r"^\| (ff_v_\w+) \|", PAGE.read_text(), re.M)
    query = "select relname from pg_class where relkind = 'v' and relname like 'ff\\_v\\_%%'"
    assert sorted(said) == sorted(row["relname"] for row in table(db, query))
