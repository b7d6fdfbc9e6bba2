"""PgBouncer in transaction mode in front of a server, for any login and any database."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

PORT = 6432
PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
UNPRIVILEGED = 65534


def through(pooler: str, dsn: str) -> str:
    """The same database as the same user, through the pooler whose DSN is given."""
    way = conninfo_to_dict(pooler)
    return make_conninfo(dsn, host=way["host"], port=way["port"])


@contextmanager
def pooled(dsn: str, *, size: int = 2, kept: int = 2, behind: bool = False) -> Iterator[str]:
    """The DSN through a pooler with that many server connections for each user and database, used in turn.

    PgBouncer opens `kept` of them without a client's request. That must be 0 where databases are dropped: a
    connection to a database that is gone makes PgBouncer reject its clients for 15 seconds (server_login_retry).

    `behind`: sessions find the private schema too, as those of conftest.py do.

    PgBouncer looks logins up in the server, which must trust every login on its socket.
    """
    if not PROGRAM:
        pytest.skip("pgbouncer is not installed")
    target = conninfo_to_dict(dsn)
    host, user = str(target["host"]), str(target["user"])
    directory = Path(tempfile.mkdtemp(prefix="pyff-pooler-"))
    (directory / "users.txt").write_text(f'"{user}" ""\n')
    (directory / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={host} port={target.get('port', 5432)} auth_user={user}"
        f"{' connect_query=' + repr('set search_path = public, ff') if behind else ''}\n"
        f"[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\nunix_socket_dir = {directory}\n"
        f"auth_type = trust\nauth_file = {directory}/users.txt\n"
        f"pool_mode = transaction\ndefault_pool_size = {size}\nmin_pool_size = {kept}\nserver_round_robin = 1\n"
        "max_client_conn = 1000\nignore_startup_parameters = extra_float_digits\nserver_lifetime = 600\n"
    )
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [PROGRAM, str(directory / "pgbouncer.ini")],
            stdout=log,
            stderr=log,
            cwd="/",
            **_account(directory, host),
        )
    try:
        way = make_conninfo(dsn, host=str(directory), port=PORT)
        _wait_until_it_answers(way, process, directory / "log")
        yield way
    finally:
        process.terminate()
        process.wait(90)
        shutil.rmtree(directory)


def _account(directory: Path, host: str) -> dict[str, Any]:
    """It refuses to run as root: then it runs as the one who owns the server's socket."""
    if os.getuid() != 0:
        return {}
    owner = Path(host).stat() if host.startswith("/") else directory.stat()
    user, group = (owner.st_uid or UNPRIVILEGED, owner.st_gid or UNPRIVILEGED)
    directory.chmod(0o755)
    os.chown(directory, user, group)
    return {"user": user, "group": group, "extra_groups": []}


def _wait_until_it_answers(dsn: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + 90
    while True:
        try:
            psycopg.connect(dsn, prepare_threshold=None).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > until:
                pytest.fail(log.read_text())
            time.sleep(0.05)
        else:
            return
