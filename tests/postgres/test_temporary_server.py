"""`temporary`: a server for tests and benches that cannot be left behind."""

import os
import random
import subprocess
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from pyff.postgres import PgError, temporary
from tests.postgres.helpers import mentions, one, until

PROGRAM = """
import os, sys
from pyff.postgres import temporary
server = temporary()
if "fork" in sys.argv:  # a child that outlives its parent and holds the parent's pipes
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "20"]) if os.fork() else None
        import time; time.sleep(20); os._exit(0)
print(server.directory, flush=True)
sys.stdin.read()
"""


def gone(directory: Path) -> bool:
    return not directory.exists() and not mentions(directory)


def test_it_is_fast_by_default_and_leaves_nothing():
    with temporary() as server:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert one(server.dsn, f"show {setting}") == "off"
        assert one(server.dsn, "show listen_addresses") == ""
        assert int(str(one(server.dsn, "show max_connections"))) >= 200
        assert (server.bindir / "postgres").exists()
    assert gone(server.directory)
    server.close()


def test_settings_can_be_chosen_and_durable_data_lies_on_disk():
    with temporary(fsync="on", work_mem="7MB", max_connections=20) as server:
        assert one(server.dsn, "show fsync") == "on"
        assert one(server.dsn, "show work_mem") == "7MB"
        assert one(server.dsn, "show max_connections") == "20"
        assert not server.directory.is_relative_to("/dev/shm")  # noqa: S108


def test_two_do_not_disturb_each_other():
    with temporary() as one_server, temporary() as other:
        one(one_server.dsn, "create table t ()")
        assert one(other.dsn, "select to_regclass('t')") is None


def test_an_unknown_setting_is_explained_and_leaves_nothing(monkeypatch, empty_home):
    with pytest.raises(PgError, match="nonsense"):
        temporary(where=empty_home, nonsense=1)
    assert not list(empty_home.glob("pyff-*"))


def test_a_busy_client_does_not_delay_the_end():
    with temporary() as server:
        client = psycopg.connect(server.dsn, autocommit=True)
        client.pgconn.send_query(b"select pg_sleep(600)")
    assert gone(server.directory)
    client.close()


@pytest.mark.slow("kills processes")
def test_a_killed_parent_leaves_no_server_and_no_files(python):
    parent = python(PROGRAM)
    directory = Path(parent.stdout.readline().strip())
    assert directory.is_dir()
    parent.kill()
    until(lambda: gone(directory), explain=lambda: mentions(directory))


@pytest.mark.slow("kills processes")
def test_a_child_that_outlives_the_killed_parent_does_not_keep_the_server(python):
    parent = python(PROGRAM, "fork", start_new_session=True)
    directory = Path(parent.stdout.readline().strip())
    parent.kill()
    try:
        until(lambda: gone(directory), explain=lambda: mentions(directory))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(parent.pid, 9)


@pytest.mark.slow("kills processes")
def test_a_kill_at_any_moment_of_the_start_leaves_nothing(python, monkeypatch, empty_home):
    program = "import sys; from pathlib import Path; from pyff.postgres import temporary; "
    program += "server = temporary(where=Path(sys.argv[1])); sys.stdin.read()"
    moments = [random.uniform(0.1, 1) for _ in range(5)]
    for moment in moments:
        parent = python(program, str(empty_home))
        with suppress(subprocess.TimeoutExpired):
            parent.wait(timeout=moment)
        parent.kill()
        parent.wait()
        until(
            lambda: not mentions(empty_home) and not list(empty_home.glob("pyff-*")),
            explain=lambda: (moments, mentions(empty_home), list(empty_home.iterdir())),
        )
