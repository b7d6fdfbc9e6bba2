"""Through a connection pooler in transaction mode, where the next call may meet another server connection."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pyff import AsyncEngine, Engine

CALLS = 30
NOBODY = 65534


@pytest.fixture
def pooled(dsn):
    """A DSN that goes through pgbouncer, with two server connections behind it."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if not program:
        pytest.skip("pgbouncer is not installed")
    target = conninfo_to_dict(dsn)
    directory = Path(tempfile.mkdtemp(prefix="pyff-pooler-"))
    account = _account(directory, target["host"])
    server = " ".join(
        f"{k}={target[k]}" for k in ("host", "port", "dbname", "user", "password") if k in target
    )
    (directory / "pgbouncer.ini").write_text(
        f"""
        [databases]
        {target["dbname"]} = {server}
        [pgbouncer]
        listen_addr =
        listen_port = 6432
        unix_socket_dir = {directory}
        auth_type = any
        pool_mode = transaction
        default_pool_size = 2
        server_round_robin = 1
        """.replace(" " * 8, "")
    )
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [program, str(directory / "pgbouncer.ini")], stdout=log, stderr=log, cwd="/", **account
        )
    try:
        through = make_conninfo(
            "", host=str(directory), port=6432, dbname=target["dbname"], user=target["user"]
        )
        _wait_until_it_answers(through, process, directory / "log")
        yield through
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(directory)


def _account(directory, host):
    """pgbouncer refuses to run as root: then it runs as the one who owns the server's socket."""
    if os.getuid() != 0:
        return {}
    owner = Path(host).stat() if host.startswith("/") else directory.stat()
    user, group = (owner.st_uid or NOBODY, owner.st_gid or NOBODY)
    directory.chmod(0o755)
    os.chown(directory, user, group)
    return {"user": user, "group": group, "extra_groups": []}


def _wait_until_it_answers(dsn, process, log):
    deadline = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(dsn, prepare_threshold=None).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(log.read_text())
            time.sleep(0.05)
        else:
            return


def test_an_engine_without_prepared_statements_works_through_a_pooler(pooled):
    with Engine(pooled, prepare_threshold=None) as engine:
        for _ in range(CALLS):
            assert engine.ping().ok
            engine.create_execution("default")


async def test_an_async_engine_without_prepared_statements_works_through_a_pooler(pooled):
    async with AsyncEngine(pooled, prepare_threshold=None) as engine:
        for _ in range(CALLS):
            assert (await engine.ping()).ok


def test_a_connection_of_the_callers_is_not_prepared_on_either(pooled):
    with psycopg.connect(pooled, autocommit=True) as conn:
        engine = Engine(conn, prepare_threshold=None)
        for _ in range(CALLS):
            assert engine.ping().ok


def test_prepared_statements_are_used_by_default(engine, dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        engine = Engine(conn)
        for _ in range(10):
            engine.ping()
        prepared = conn.execute("select statement from pg_prepared_statements").fetchall()
    assert any("ff_ping" in statement for (statement,) in prepared)
