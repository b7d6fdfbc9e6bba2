"""The same program in five languages: each uses a real server over TCP, with the least privileged roles.

What a language needs comes from its own registry into its own cache, at the versions that its lock pins.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pyff.migrate import migrate
from pyff.postgres import PgError, TemporaryServer, temporary
from tests.docs.blocks import blocks

HERE = Path(__file__).parents[2] / "examples" / "polyglot"
TRANSCRIPT = (HERE / "transcript.txt").read_text()
(SETUP,) = blocks(HERE / "README.md", "sql")
SHELL = [line for line in blocks(HERE / "README.md", "sh")[0].splitlines() if line]

# A registry that cannot be reached says nothing about the program.
UNREACHABLE = re.compile(
    r"ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ERR_SOCKET_TIMEOUT|dial tcp|i/o timeout"
    r"|TLS handshake timeout|no such host|Could not transfer artifact|No plugin found for prefix|Unknown host"
    r"|Connection refused|50[234] "
)


def _listening() -> TemporaryServer:
    for _ in range(20):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        try:
            return temporary(listen_addresses="127.0.0.1", port=port)
        except PgError:  # the port was taken in between
            continue
    raise AssertionError("no free port was found in 20 tries")


@pytest.fixture(scope="module")
def server() -> Iterator[TemporaryServer]:
    with _listening() as started:
        yield started


@pytest.fixture
def database(server: TemporaryServer, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """A migrated database of this test's own, made ready as the README says; the environment of a program."""
    name = re.sub(r"\W+", "_", request.node.name)
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(f"create database {name}")
        (port,) = admin.execute("show port").fetchone()
        dsn = make_conninfo(server.dsn, dbname=name)
        migrate(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("drop role if exists invoices, customer")
            conn.execute(SETUP)
            yield {
                "PYFF_DSN": f"postgresql://invoices:secret@127.0.0.1:{port}/{name}",
                "PYFF_SENDER_DSN": f"postgresql://customer:guess@127.0.0.1:{port}/{name}",
            }
        admin.execute(f"drop database {name} with (force)")


def check(dsn: str) -> None:
    """One execution was completed, with its result, and the invariants hold."""
    with psycopg.connect(dsn) as conn:
        ((execution_id, state),) = conn.execute(
            "select execution_id, public_state from ff_list_executions()"
        ).fetchall()
        assert state == "completed"
        result = conn.execute("select result from ff_get_execution_result(%s)", [execution_id]).fetchone()
        assert result == (b"booked",)
        assert conn.execute("select * from ff_check_invariants()").fetchall() == []


def tool(name: str, question: str, version: str, least: int) -> None:
    """Skips the test, and says why, where a program is missing or too old."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"this machine has no {name}")
    done = subprocess.run([path, question], capture_output=True, text=True, timeout=300, check=False)
    said = (done.stdout + done.stderr).strip()
    found = re.search(version, said)
    if found is None or int(found[1]) < least:
        pytest.skip(f"{name} {least} is needed, this machine has {said!r}")


def command(beginning: str) -> str:
    """A line of the README."""
    (found,) = [line for line in SHELL if line.startswith(beginning)]
    return found


@pytest.fixture
def transcript(server: TemporaryServer, database: dict[str, str], tmp_path: Path) -> Callable[[str], str]:
    """Runs a command of the README, in a copy: what it installs and compiles never lands in the checkout."""
    copy = shutil.copytree(HERE, tmp_path / "polyglot")

    def run(line: str) -> str:
        path = f"{Path(sys.executable).parent}:{server.bindir}:{os.environ['PATH']}"
        environment = {
            "HOME": str(tmp_path),
            **os.environ,
            **database,
            "PATH": path,
            "npm_config_fetch_retry_mintimeout": "1000",
            "npm_config_fetch_retry_maxtimeout": "5000",
            "GOTOOLCHAIN": "local",  # never one from the network
            "GOFLAGS": "-mod=readonly -buildvcs=false",
        }
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=copy,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1200,  # a compiler, on a machine that is busy with something else
            check=False,
        )
        said = done.stdout + done.stderr
        server_port = str(urlsplit(database["PYFF_DSN"]).port)  # an error that names it is about the server
        if done.returncode != 0 and server_port not in said and (reason := UNREACHABLE.search(said)):
            pytest.skip(f"a registry cannot be reached: {reason[0].strip()}")
        assert done.returncode == 0, said
        check(make_conninfo(server.dsn, dbname=database["PYFF_DSN"].rpartition("/")[2]))
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)  # some builds of Maven colour even nothing

    return run


def test_psql(transcript):
    assert transcript(command("psql ")) == TRANSCRIPT


def test_python_with_psycopg(transcript):
    assert transcript(command("python ")) == TRANSCRIPT


@pytest.mark.slow("builds environments")
def test_node_with_pg(transcript):
    tool("node", "--version", r"v(\d+)", 18)
    tool("npm", "--version", r"(\d+)", 8)
    assert transcript(command("(cd node ")).endswith(f"\n{TRANSCRIPT}")  # after what npm says


@pytest.mark.slow("builds environments")
def test_the_worker_in_javascript_is_notified_renews_and_stops(server, database, tmp_path):
    """docs/other-languages.md shows it."""
    tool("node", "--version", r"v(\d+)", 18)
    tool("npm", "--version", r"(\d+)", 8)
    copy = shutil.copytree(HERE / "node", tmp_path / "node")
    environment = {"HOME": str(tmp_path), **os.environ, **database}
    installed = subprocess.run(
        ["npm", "ci"], cwd=copy, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    if installed.returncode != 0 and (reason := UNREACHABLE.search(installed.stderr)):
        pytest.skip(f"a registry cannot be reached: {reason[0].strip()}")
    assert installed.returncode == 0, installed.stderr
    # A poll would come too late, and a lease that is not renewed would expire.
    environment |= {"POLL_MS": "600000", "LEASE_MS": "900"}
    dsn = make_conninfo(server.dsn, dbname=database["PYFF_DSN"].rpartition("/")[2])
    with psycopg.connect(dsn, autocommit=True) as conn:

        def submit(payload: str) -> str:
            query = (
                "select execution_id from ff_create_execution('numbers', p_payload => convert_to(%s, 'UTF8'))"
            )
            return conn.execute(query, [payload]).fetchone()[0]

        def until(query: str, *args: object) -> None:
            deadline = time.monotonic() + 60
            while conn.execute(query, args).fetchone() is None:
                assert time.monotonic() < deadline, query
                time.sleep(0.02)

        submit('{"number": 1}')
        with subprocess.Popen(
            ["node", "worker.js"], cwd=copy, env=environment, stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                until("select from ff.ff_lane_registry where wake_armed")  # idle
                until("select from pg_stat_activity where query = 'listen ff_lane' and state = 'idle'")
                slow = submit('{"number": 21, "takes_ms": 2500}')
                wrong = submit('{"number": -1}')
                ended = "select from ff_v_execution where execution_id = %s and public_state = %s"
                until(ended, slow, "completed")
                until(ended, wrong, "failed")
                result = conn.execute("select result from ff_get_execution_result(%s)", [slow]).fetchone()
                taken = submit('{"number": 2, "takes_ms": 600000}')
                until(ended, taken, "active")
                conn.execute("select ff_cancel_execution(%s, 'test')", [taken])
                process.send_signal(signal.SIGTERM)
                said, _ = process.communicate(timeout=60)
            finally:
                process.kill()
        assert result == (b"42",)
        assert process.returncode == 0
        assert said.splitlines()[1:] == [
            f"completed {slow}",
            f"failed {wrong}",
            f"lost {taken} WF400",
        ]
        assert conn.execute("select * from ff_check_invariants()").fetchall() == []


def test_the_page_shows_the_worker_in_javascript():
    assert blocks(HERE.parents[1] / "docs" / "other-languages.md", "js") == [
        (HERE / "node" / "worker.js").read_text()
    ]


@pytest.mark.slow("builds environments")
def test_go_with_pgx(transcript):
    tool("go", "version", r"go1\.(\d+)", 25)
    assert transcript(command("(cd go ")) == TRANSCRIPT


@pytest.mark.slow("builds environments")
def test_java_with_jdbc(transcript):
    tool("java", "-version", r'version "(\d+)', 17)
    tool("mvn", "--version", r"Maven (\d+)", 3)
    assert transcript(command("(cd java ")) == TRANSCRIPT


def test_the_readme_says_how_they_are_run():
    assert [line.split("=")[0] for line in SHELL if line.startswith("export ")] == [
        "export PYFF_DSN",
        "export PYFF_SENDER_DSN",
    ]
    tested = re.findall(r'transcript\(command\("(.*?)"\)\)', Path(__file__).read_text())
    assert all(line.startswith(("export ", *tested)) for line in SHELL)


def test_the_lock_of_node_names_no_registry():
    lock = (HERE / "node" / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert lock.count('"integrity": "sha512-') == lock.count('"node_modules/')
