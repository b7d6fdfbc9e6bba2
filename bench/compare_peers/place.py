"""One server for all, a fresh database for each measurement: a copy of the one that the peer set up."""

import contextlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench.compare_peers.install import Installed
from bench.compare_peers.peers import Peer
from bench.compare_peers.protocol import Client, Driver, Worker, until, working
from bench.process import processor_seconds
from bench.server import SETTINGS as DURABLE

SETTINGS = {**DURABLE, "max_connections": "300"}
SHOWN = (*SETTINGS, "checkpoint_timeout", "autovacuum", "autovacuum_naptime", "work_mem", "jit", "wal_level")


@dataclass(frozen=True)
class Reading:
    """Resources used at one moment: bytes of WAL, writing transactions, processor seconds of both sides."""

    wal: float
    transactions: float
    server_s: float
    other_s: float

    def per_task(self, before: "Reading", count: int) -> dict[str, float]:
        """The cost per task since an earlier moment."""
        return {
            "wal": (self.wal - before.wal) / count,
            "transactions": (self.transactions - before.transactions) / count,
            "server": 1e6 * (self.server_s - before.server_s) / count,
            "other": 1e6 * (self.other_s - before.other_s) / count,
        }


@dataclass
class Place:
    """A database of a peer, its client, and how to start its workers."""

    peer: Peer
    installed: Installed
    dsn: str
    client: Client
    log: Path
    _conn: psycopg.Connection[tuple[int]] = field(repr=False)

    @contextlib.contextmanager
    def workers(self, *options: dict[str, object]) -> Iterator[list[Worker]]:
        """Worker processes, one for each set of options."""
        commands = [[*self.installed.command, "worker", self.dsn, json.dumps(o)] for o in options]
        with working(commands, log=self.log) as running:
            yield running

    def enqueue(self, task: str, count: int, *, batch: bool = True, first: int = 0, sets: int = 0) -> float:
        given: dict[str, object] = {"task": task, "first": first, "count": count, "batch": batch}
        answer = self.client.ask("enqueue", **given, **({"sets": sets} if sets else {}))
        return float(answer["seconds"])

    def left(self) -> int:
        """The number of unfinished tasks, according to the database."""
        row = self._conn.execute(self.peer.left).fetchone()
        return row[0] if row else 0

    def retain(self, count: int) -> None:
        """Copies the one finished task many times in SQL: running them would take too long."""
        for statement in self.peer.retain:
            self._conn.execute(statement.replace("%(n)s", str(count)).encode())

    def settle(self) -> None:
        """Updates statistics, and runs the checkpoint that earlier work caused."""
        self._conn.execute("vacuum analyze")
        self._conn.execute("checkpoint")

    def reading(self, processes: Sequence[Driver]) -> Reading:
        """Resources used so far; `processes` are those of the other side, workers or a client."""
        row = self._conn.execute(
            "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8,"
            " pg_snapshot_xmax(pg_current_snapshot())::text::float8,"
            " split_part(pg_read_file('postmaster.pid'), E'\\n', 1)"
        ).fetchone()
        wal, transactions, server = row or (0, 0, 0)
        return Reading(
            float(wal),
            float(transactions),
            processor_seconds(int(server)),
            sum(processor_seconds(other.process.pid) for other in processes),
        )

    def finished(self, workers: Sequence[Worker], seconds: float) -> float | None:
        """The time (time.time) at which no task was unfinished, or None on a timeout."""
        end = time.monotonic() + seconds
        while self.left():
            if time.monotonic() > end:
                return None
            until(workers, lambda: True, 0)
            time.sleep(0.01)
        return time.time()

    def connections(self) -> set[int]:
        """The backends that serve this database, as process ids."""
        found = self._conn.execute("select pid from pg_stat_activity where datname = current_database()")
        return {pid for (pid,) in found.fetchall()}


class Host:
    """The server that all peers use."""

    def __init__(self, dsn: str, log: Path) -> None:
        self._dsn = dsn
        self._log = log
        self._made = 0

    def settings(self) -> dict[str, str]:
        with psycopg.connect(self._dsn) as conn:
            found = conn.execute(
                "select name, current_setting(name) from pg_settings where name = any (%s)", [list(SHOWN)]
            ).fetchall()
            version = conn.execute("show server_version").fetchone()
        return {"server_version": version[0] if version else "", **dict(found)}

    def prepare(self, peer: Peer, installed: Installed) -> None:
        """The template of the databases."""
        name = _template(peer)
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            conn.execute(f"create database {name}")
        with self._client(installed, self._url(name)) as client:
            client.ask("setup")

    @contextlib.contextmanager
    def place(self, peer: Peer, installed: Installed) -> Iterator[Place]:
        with (
            self._database(peer) as name,
            self._client(installed, self._url(name)) as client,
            psycopg.connect(make_conninfo(self._dsn, dbname=name), autocommit=True) as conn,
        ):
            yield Place(peer, installed, self._url(name), client, self._log, conn)

    @contextlib.contextmanager
    def _database(self, peer: Peer) -> Iterator[str]:
        """A copy of the peer's template; or the template itself, emptied."""
        if peer.cleaned:
            name = _template(peer)
            with psycopg.connect(make_conninfo(self._dsn, dbname=name), autocommit=True) as own:
                own.execute(
                    "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
                    " where datname = current_database() and pid <> pg_backend_pid()"
                    " and backend_type = 'client backend'"
                )
                own.execute(peer.cleaned.encode())
            yield name
            return
        self._made += 1
        name = f"run{self._made}"
        with psycopg.connect(self._dsn, autocommit=True) as own:
            own.execute(f"create database {name} template {_template(peer)}")
            try:
                yield name
            finally:
                own.execute(f"drop database {name} with (force)")

    def _client(self, installed: Installed, url: str) -> Client:
        client = Client([*installed.command, "client", url], log=self._log)
        try:
            client.next(60)
        except BaseException:
            client.stop()
            raise
        return client

    def _url(self, dbname: str) -> str:
        """The DSN in the form that every driver accepts."""
        parts = conninfo_to_dict(self._dsn)
        host, port = quote(str(parts["host"]), safe=""), parts.get("port", 5432)
        return f"postgresql://{parts['user']}@/{dbname}?host={host}&port={port}"


def _template(peer: Peer) -> str:
    return "peer_" + re.sub(r"\W+", "_", peer.name.lower()).strip("_")
