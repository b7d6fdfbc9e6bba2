"""pgbouncer in transaction mode in front of a database."""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo


@contextmanager
def pooled(dsn):
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if not program:
        pytest.skip("pgbouncer is not installed")
    target = conninfo_to_dict(dsn)
    directory = Path(tempfile.mkdtemp(prefix="pyff-pooler-"))
    account = {}
    if os.getuid() == 0:  # it refuses to run as root: then as the one who owns the server's socket
        owner = Path(target["host"]).stat()
        directory.chmod(0o755)
        os.chown(directory, owner.st_uid, owner.st_gid)
        account = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
    server = " ".join(f"{k}={target[k]}" for k in ("host", "port", "dbname", "user") if k in target)
    (directory / "pgbouncer.ini").write_text(
        f"[databases]\n{target['dbname']} = {server}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
        f"unix_socket_dir = {directory}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n"
        "server_round_robin = 1\n"
    )
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [program, str(directory / "pgbouncer.ini")], stdout=log, stderr=log, cwd="/", **account
        )
    try:
        through = make_conninfo(
            "", host=str(directory), port=6432, dbname=target["dbname"], user=target["user"]
        )
        until = time.monotonic() + 20
        while True:
            try:
                psycopg.connect(through, prepare_threshold=None).close()
                break
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > until:
                    pytest.fail((directory / "log").read_text())
                time.sleep(0.05)
        yield through
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(directory)
