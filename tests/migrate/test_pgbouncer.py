"""Through a pooler that gives the connection to somebody else after every transaction."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pyff.migrate import Status, check, migrate, require_current

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
pytestmark = pytest.mark.skipif(not PGBOUNCER, reason="pgbouncer is not installed")


@pytest.fixture
def pooled(database):
    """The database behind a pgbouncer in transaction mode with two connections."""
    server = conninfo_to_dict(database.dsn)
    directory = Path(tempfile.mkdtemp(prefix="pyff-"))
    directory.chmod(0o777)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    target = " ".join(
        f"{key}='{value}'" for key, value in server.items() if key in ("host", "port", "dbname", "password")
    )
    (directory / "users.txt").write_text(f'"{server["user"]}" ""\n')
    (directory / "pgbouncer.ini").write_text(
        f"[databases]\n{database.name} = {target} user={server['user']}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = any\nauth_file = {directory}/users.txt\n"
        "pool_mode = transaction\ndefault_pool_size = 2\n"
    )
    account = {}
    if (
        os.geteuid() == 0
    ):  # it refuses to run as root; the server's own account may enter the socket's directory
        owner = Path(server["host"]).stat() if server.get("host", "").startswith("/") else None
        account = (
            {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if owner else {"user": "nobody"}
        )
    with subprocess.Popen(
        [PGBOUNCER, directory / "pgbouncer.ini"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        **account,
    ) as process:
        dsn = make_conninfo(host="127.0.0.1", port=port, user=server["user"], dbname=database.name)
        try:
            for _ in range(100):
                try:
                    psycopg.connect(dsn, prepare_threshold=None).close()
                    break
                except psycopg.OperationalError as error:
                    if process.poll() is not None:
                        pytest.fail(process.stdout.read())
                    last = error
                    time.sleep(0.05)
            else:
                pytest.fail(f"pgbouncer does not answer: {last}")
            yield dsn
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(directory)


def test_the_real_tree_is_installed_through_a_pooler(pooled, database, empty, dump):
    assert migrate(pooled).functions_applied
    assert migrate(pooled).applied == ()
    assert check(pooled).status is Status.CURRENT
    with psycopg.connect(pooled, prepare_threshold=None) as conn:
        require_current(conn)
    direct = empty()
    migrate(direct.dsn)
    assert dump(database.dsn) == dump(direct.dsn)
    held = "select from pg_locks l join pg_database d on d.oid = l.database where locktype = 'advisory'"
    assert database.rows(f"{held} and datname = current_database()") == []


def test_an_index_is_built_concurrently_through_a_pooler(pooled, release):
    release.migration(
        "0002.index",
        "-- transactional: false\ncreate index concurrently ff_i on ff_thing (name);",
        "drop index ff_i;",
    )
    assert migrate(pooled, db=release.tree).applied == ("0001.core", "0002.index")
