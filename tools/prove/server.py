"""A durable server of the campaign's own, that can be crashed and started again."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, cluster, find, places, postmaster, temporary

SETTINGS: dict[str, str | int | float | bool] = {
    "fsync": True,
    "synchronous_commit": True,
    "full_page_writes": True,
    "max_connections": 100,
    "deadlock_timeout": "200ms",
    "checkpoint_timeout": "30s",
}


class Server:
    """Migrated, seeded with a signing key, three quota policies, three budgets and a schedule."""

    def __init__(self, *, where: Path | None = None, **settings: str | int | float | bool) -> None:
        self.settings = {**SETTINGS, **settings}
        self.running: TemporaryServer = temporary(where=where, **self.settings)
        self.dsn = self._create("prove", "template1")
        migrate(self.dsn)
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute("select ff_seed_waitpoint_hmac_secret(p_kid => 'prove')")
            conn.execute("select ff_create_quota_policy('few', p_max_concurrent => 2)")
            conn.execute(
                "select ff_create_quota_policy('slow', p_window_seconds => 10, p_max_requests_per_window => 2,"
                " p_jitter_ms => 50)"
            )
            conn.execute(
                "select ff_create_budget('tokens', '{tokens}', '{20000}', '{15000}', p_on_hard_limit => 'block')"
            )
            conn.execute("select ff_create_budget('money', '{tokens}', '{300}', '{0}')")
            conn.execute(
                "select ff_create_budget('turn', '{tokens}', '{400}', '{0}', p_reset_interval_ms => 2000)"
            )
            conn.execute("select ff_create_quota_policy('doors', p_max_concurrent => 1)")
            conn.execute(
                "select ff_create_schedule('beat', 'b', p_interval_ms => 1000, p_catch_up => 'all',"
                " p_max_catch_up => 1000)"
            )

    def _create(self, name: str, template: str) -> str:
        create = SQL("create database {} template {}").format(Identifier(name), Identifier(template))
        deadline = time.monotonic() + 60
        while True:
            try:
                with psycopg.connect(self.running.dsn, autocommit=True) as conn:
                    conn.execute(create)
                    break
            except psycopg.errors.ObjectInUse:  # by a session that is ending
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        return make_conninfo(self.running.dsn, dbname=name)

    def clone(self, name: str) -> str:
        """A copy of the database as it is; no session may be connected to it."""
        return self._create(name, "prove")

    def drop(self, name: str) -> None:
        with psycopg.connect(self.running.dsn, autocommit=True) as conn:
            conn.execute(SQL("drop database {} with (force)").format(Identifier(name)))

    def close(self) -> None:
        self.running.close()

    def crash(self) -> None:
        """Immediate shutdown, then crash recovery."""
        postmaster.stop(self.running.data, postmaster.IMMEDIATE)
        self.start()

    def start(self) -> None:
        options = {
            **self.settings,
            "listen_addresses": "",
            "port": places.SOCKET_PORT,
            "unix_socket_directories": str(self.running.directory),
        }
        cluster.start(self.running.data, self.running.log, find(), options, patience=180)

    def kill_a_child(self, dsn: str) -> None:
        """SIGKILL of a backend, the checkpointer or the like: all are taken down, and the server recovers."""
        with suppress(psycopg.Error), psycopg.connect(dsn, autocommit=True) as conn:
            found = conn.execute(
                """
                select a.pid from pg_stat_activity a
                 where a.pid <> pg_backend_pid() and a.backend_type <> 'logical replication launcher'
                 order by random() limit 1
                """
            ).fetchone()
            if found:
                with suppress(ProcessLookupError):
                    os.kill(found[0], signal.SIGKILL)

    @property
    def log(self) -> Path:
        return self.running.log
