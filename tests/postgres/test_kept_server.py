"""`start`, `stop`, `status`: the server that is kept between runs."""

import os
import random
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pyff.postgres import PgError, dsn, find, postmaster, start, status, stop
from pyff.postgres.kept import Server
from tests.postgres.helpers import ask_psql, kill, mentions, one, until


def test_start_makes_a_durable_server_with_a_database(empty_home):
    server = start()
    assert server.started
    assert one(server.dsn, "select current_database()") == "pyff"
    assert one(server.dsn, "show fsync") == "on"
    assert one(server.dsn, "show listen_addresses") == ""
    assert dsn() == server.dsn


def test_psql_understands_the_dsn(home):
    assert ask_psql(start().dsn, "select 6 * 7") == "42"


def test_a_second_start_joins_the_running_server(home):
    first, second = start(), start()
    assert (first.started, second.started) == (True, False)
    assert first.status == second.status


def test_status_follows_the_server(home):
    assert not status().running
    pid = start().status.pid
    assert status().running
    assert status().pid == pid
    assert stop()
    assert not status().running
    assert not stop()


def test_the_dsn_of_a_stopped_server_says_how_to_start_it(home):
    with pytest.raises(PgError, match="pyff server start"):
        dsn()


def test_data_survives_a_stop(home):
    one(start().dsn, "create table t as select 1 as n")
    stop()
    assert one(start().dsn, "select n from t") == 1


def test_the_server_s_directory_is_private(empty_home):
    start()
    (directory,) = empty_home.glob("pg-*/")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert directory.stat().st_uid == find().account.uid != 0


def test_concurrent_starts_agree_on_one_server(empty_home, python):
    program = "from pyff.postgres import start; s = start(); print(s.status.pid, s.started)"
    runs = [python(program) for _ in range(4)]
    answers = [run.communicate(timeout=90)[0].split() for run in runs]
    assert len({pid for pid, _ in answers}) == 1
    assert sorted(started for _, started in answers) == ["False", "False", "False", "True"]


# --- remains of earlier servers -------------------------------------------------------------------


@pytest.mark.slow("kills processes")
def test_a_killed_postmaster_is_replaced_and_no_committed_row_is_lost(home):
    server = start()
    one(server.dsn, "create table t (n int)")
    busy = [psycopg.connect(server.dsn, autocommit=True) for _ in range(3)]
    for n, connection in enumerate(busy):
        connection.execute("insert into t values (%s)", [n])
        connection.pgconn.send_query(b"select count(*) from generate_series(1, 100000000)")
    kill(server.status.pid)
    again = start()
    assert again.started
    assert again.status.pid != server.status.pid
    assert one(again.dsn, "select count(*) from t") == 3
    for connection in busy:
        connection.close()


def as_if_killed(home: Path, pid: int) -> Path:
    """Leaves the pid file of a server that was killed, but with another process's pid in it."""
    start()
    (data,) = home.glob("pg-*/data")
    path = data / "postmaster.pid"
    lines = path.read_text().splitlines(keepends=True)
    owner = path.stat()
    stop()
    path.write_text(f"{pid}\n" + "".join(lines[1:]))
    os.chown(path, owner.st_uid, owner.st_gid)
    return path


def test_a_pid_file_that_names_a_stranger_is_no_obstacle(home):
    account = find().account
    stranger = subprocess.Popen(["sleep", "600"], user=account.uid if account.dropped else None)
    try:
        as_if_killed(home, stranger.pid)
        assert start().started
    finally:
        stranger.kill()
        stranger.wait()


def test_a_pid_file_that_names_a_zombie_is_no_obstacle(home):
    zombie = subprocess.Popen(["true"])
    until(lambda: Path(f"/proc/{zombie.pid}/cmdline").read_bytes() == b"")
    as_if_killed(home, zombie.pid)
    assert start().started
    zombie.wait()


def test_a_torn_pid_file_is_no_obstacle(home):
    as_if_killed(home, 1).write_text("")
    assert start().started


def test_an_interrupted_initdb_is_repeated(empty_home):
    (empty_home / f"pg-{find().major}").mkdir(mode=0o700)
    find().account.give(empty_home / f"pg-{find().major}")
    half = empty_home / f"pg-{find().major}" / "data.new-half"
    half.mkdir()
    (half / "PG_VERSION").write_text("0")
    assert start().started
    assert not half.exists()


@pytest.mark.skipif(not shutil.which("ps"), reason="there is no ps here")
@pytest.mark.parametrize("name", ["plain", "with some spaces"])
def test_where_there_is_no_proc_ps_finds_the_server(home, monkeypatch, name):
    move(home, name, monkeypatch)
    server = start()
    by_proc = postmaster.processes(server.status.data)
    monkeypatch.setattr(postmaster, "_arguments", postmaster._arguments_by_ps)
    assert server.status.pid in by_proc
    assert server.status.pid in postmaster.processes(server.status.data)
    assert postmaster.processes(home) == []


# --- the reaper -----------------------------------------------------------------------------------

REAPED = """
import sys
from pyff.postgres import start
server = start(reap=True)
print(server.status.pid, flush=True)
for word in sys.stdin:
    getattr(server, word.strip())()
    print("done", flush=True)
"""


def nothing_runs(home: Path) -> bool:
    return not mentions(home)


@pytest.mark.slow("kills processes")
def test_a_reaped_server_stops_when_its_process_is_killed(home, python):
    user = python(REAPED)
    assert user.stdout.readline()
    assert status().running
    user.kill()
    until(lambda: nothing_runs(home), explain=lambda: mentions(home))


def test_a_reaped_server_stops_when_it_is_closed(home):
    with start(reap=True):
        assert status().running
    assert not status().running
    assert nothing_runs(home)


def test_keep_lets_a_reaped_server_live(home, python):
    user = python(REAPED)
    pid = int(user.stdout.readline())
    user.stdin.write("keep\n")
    user.stdin.flush()
    assert user.stdout.readline() == "done\n"
    user.kill()
    user.wait()
    until(lambda: not [command for command in mentions(home) if "postmaster.py" in command])
    assert status().pid == pid


@pytest.mark.slow("kills processes")
def test_a_reaped_server_stops_with_the_last_of_its_users(home, python):
    first, second = python(REAPED), python(REAPED)
    assert first.stdout.readline() == second.stdout.readline()
    first.kill()
    until(lambda: len([command for command in mentions(home) if "postmaster.py" in command]) == 1)
    assert status().running
    second.kill()
    until(lambda: nothing_runs(home), explain=lambda: mentions(home))


def test_a_kept_server_is_joined_and_left_alone(home):
    pid = start().status.pid
    with start(reap=True) as server:
        assert not server.started
    assert status().pid == pid


def test_start_without_reap_keeps_what_another_would_have_stopped(home, python):
    user = python(REAPED)
    pid = int(user.stdout.readline())
    start()
    user.kill()
    user.wait()
    until(lambda: not [command for command in mentions(home) if "postmaster.py" in command])
    assert status().pid == pid


@pytest.mark.slow("kills processes")
def test_a_kill_at_any_moment_of_the_first_start_leaves_nothing_and_the_next_start_works(empty_home, python):
    moments = [random.uniform(0.1, 1.2) for _ in range(5)]
    for moment in moments:
        user = python(REAPED)
        with suppress(subprocess.TimeoutExpired):
            user.wait(timeout=moment)
        user.kill()
        until(lambda: nothing_runs(empty_home), explain=lambda: mentions(empty_home))
        assert not status().running, moments
    with start(reap=True) as server:
        assert server.started, moments


# --- places and ports -----------------------------------------------------------------------------


def move(home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = list(home.iterdir())
    (home / name).mkdir(mode=0o755)
    for entry in entries:
        entry.rename(home / name / entry.name)
    monkeypatch.setenv("PYFF_HOME", str(home / name))


def test_a_directory_with_spaces_serves(home, monkeypatch):
    move(home, "with some spaces", monkeypatch)
    server = start()
    assert one(server.dsn, "select 1") == 1
    assert stop()


def test_a_directory_too_deep_for_a_socket_serves(home, monkeypatch):
    move(home, "deep" * 25, monkeypatch)
    server = start()
    socket_directory = Path(str(conninfo_to_dict(server.dsn)["host"]))
    assert one(server.dsn, "select 1") == 1
    assert socket_directory.stat().st_mode & 0o777 == 0o700
    assert stop()
    assert not socket_directory.exists()


@pytest.mark.parametrize("character", list("\"'$`\\,"))
def test_a_directory_that_a_shell_or_libpq_would_misread_is_refused(home, monkeypatch, character):
    monkeypatch.setenv("PYFF_HOME", str(home / f"odd{character}name"))
    with pytest.raises(PgError, match="PYFF_HOME"):
        start()


def test_a_directory_that_is_a_file_is_refused(home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv("PYFF_HOME", str(home / "file"))
    with pytest.raises(PgError, match="PYFF_HOME"):
        start()


def test_data_of_another_major_version_is_refused(home):
    (data,) = home.glob("pg-*/data")
    (data / "PG_VERSION").write_text("13\n")
    with pytest.raises(PgError, match=r"written by PostgreSQL 13(.|\n)*PYFF_HOME"):
        start()


def test_a_running_server_of_another_major_version_is_refused(home):
    (directory,) = home.glob("pg-*/")
    directory.rename(home / "pg-99")
    data = home / "pg-99" / "data"
    subprocess.run(
        [
            *(find().bindir / "pg_ctl", "start", "-w", "-s", "-D", data, "-l", data.parent / "log"),
            *("-o", f"--unix_socket_directories={data.parent} --listen_addresses="),
        ],
        env={"PATH": os.environ["PATH"], **find().env},
        user=find().account.uid if find().account.dropped else None,
        cwd="/",
        check=True,
    )
    with pytest.raises(PgError, match=r"another major version(.|\n)*pyff server stop"):
        start()
    assert stop()


def start_with_tcp(monkeypatch: pytest.MonkeyPatch) -> Server:
    """With a port that was free a moment ago; with another one if that is taken by now."""
    for _ in range(20):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            monkeypatch.setenv("PYFF_PG_PORT", str(probe.getsockname()[1]))
        try:
            return start()
        except PgError as error:
            if "is taken" not in str(error):
                raise
    raise AssertionError("no free port was found in 20 tries")


def test_tcp_is_open_on_request_and_only_with_the_password(home, monkeypatch):
    server = start_with_tcp(monkeypatch)
    secret = server.status.password_file.read_text()
    assert server.status.password_file.stat().st_mode & 0o777 == 0o600
    assert one(f"{server.status.tcp} password={secret}", "select 1") == 1
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"{server.status.tcp} password=guess")


def test_a_running_server_without_the_wanted_port_is_explained(home, monkeypatch):
    start()
    monkeypatch.setenv("PYFF_PG_PORT", "5999")
    with pytest.raises(PgError, match="pyff server stop"):
        start()


def test_a_taken_port_is_explained(home, monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setenv("PYFF_PG_PORT", str(other.getsockname()[1]))
        with pytest.raises(PgError, match="PYFF_PG_PORT is taken"):
            start()


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1"])
def test_a_port_that_is_none_is_refused(home, monkeypatch, port):
    monkeypatch.setenv("PYFF_PG_PORT", port)
    with pytest.raises(PgError, match="not a port number"):
        start()


# --- an external server ----------------------------------------------------------------------------


def test_pyff_dsn_names_a_server_that_is_not_ours(home, monkeypatch):
    given = os.environ["PYFF_TEST_DSN"]
    monkeypatch.setenv("PYFF_DSN", given)
    assert dsn() == given
    assert status().running
    assert status().external
    for verb in (start, stop):
        with pytest.raises(PgError, match="PYFF_DSN"):
            verb()
    assert nothing_runs(home)


def test_an_unreachable_pyff_dsn_is_not_running(home, monkeypatch):
    monkeypatch.setenv("PYFF_DSN", f"host={home} dbname=nowhere")
    assert status().external
    assert not status().running


def test_a_start_during_a_stop_waits_for_its_end(home):
    server = start()
    client = psycopg.connect(server.dsn)
    os.kill(server.status.pid, signal.SIGTERM)  # "smart": it waits for its clients
    until(lambda: postmaster.read_pid_file(server.status.data).state == "stopping")
    threading.Timer(0.3, client.close).start()
    again = start()
    assert again.started
    assert one(again.dsn, "select 1") == 1
