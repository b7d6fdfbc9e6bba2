"""The server of the benchmarks, and pgbench on it. Tables are accessed through functions and views only."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from bench.process import processor_seconds
from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, find

SQL = Path(__file__).parent / "sql"
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
}
Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Run:
    """One run of a script. latencies_ms: all transactions, ascending."""

    per_s: float
    latencies_ms: tuple[float, ...]
    wal_bytes: float

    def percentile(self, percent: int) -> float:
        return percentile(self.latencies_ms, percent)


def percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def p99(values: Sequence[float]) -> float:
    return percentile(sorted(values), 99)


def head(server: TemporaryServer, what: str = "") -> None:
    """The first line of every report: the server and its durability."""
    with psycopg.connect(server.dsn) as conn:
        version = conn.info.parameter_status("server_version")
        shown = ", ".join(f"{name} {_one(conn, f'show {name}')}" for name in SETTINGS)
    print(f"PostgreSQL {version}, {shown}{'; ' if what else ''}{what}", flush=True)


def run_sql(conn: Connection, *names: str) -> None:
    for name in names:
        conn.execute((SQL / name).read_bytes())


@contextmanager
def database(server: TemporaryServer, name: str = "fresh") -> Iterator[Connection]:
    """A new migrated database; the first call migrates a template, the others copy it."""
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        if not _one(admin, "select count(*) from pg_database where datname = 'template_pyff'"):
            admin.execute("create database template_pyff")
            migrate(make_conninfo(server.dsn, dbname="template_pyff"))
        admin.execute(f"drop database if exists {name} with (force)")
        admin.execute(f"create database {name} template template_pyff")
    with psycopg.connect(make_conninfo(server.dsn, dbname=name), autocommit=True) as conn:
        yield conn


def pgbench_command(dsn: str, script: str, clients: int, seconds: float, logs: Path) -> list[str | Path]:
    return [
        find().bindir / "pgbench",
        *("-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(max(1, round(seconds)))),
        *("-l", "--log-prefix", f"{logs}/log", "-f", SQL / script, dsn),
    ]


def pgbench_environment() -> dict[str, str]:
    return {**os.environ, **find().env}


def logged(logs: Path) -> list[tuple[float, float]]:
    """From pgbench's logs: when each transaction ended (seconds since the epoch), and its latency in ms."""
    lines = [line.split() for log in logs.iterdir() for line in log.read_text().splitlines()]
    return [(int(line[4]) + int(line[5]) / 1e6, int(line[2]) / 1000) for line in lines]


def pgbench(conn: Connection, script: str, clients: int, seconds: int) -> Run:
    """Runs one script of bench/sql on the database of the connection, after a checkpoint."""
    with tempfile.TemporaryDirectory() as directory:
        logs = Path(directory)
        conn.execute("checkpoint")
        before = wal_position(conn)
        done = subprocess.run(
            pgbench_command(conn.info.dsn, script, clients, seconds, logs),
            capture_output=True,
            text=True,
            check=False,
            env=pgbench_environment(),
        )
        if done.returncode != 0:
            sys.exit(f"pgbench failed: {done.stderr}")
        wal = wal_position(conn) - before
        latencies = tuple(sorted(ms for _, ms in logged(logs)))
    count = len(latencies)
    if not count:
        sys.exit(f"{script}: no transaction ended within {seconds} s")
    return Run(count / seconds, latencies, wal / count)


def best_of_turns(rounds: int, runs: Sequence[Callable[[], Run]]) -> list[Run]:
    """Runs them alternately, `rounds` times; returns the fastest run of each."""
    found = [[run() for run in runs] for _ in range(rounds)]
    return [max(same, key=lambda run: run.per_s) for same in zip(*found, strict=True)]


def wal_position(conn: Connection) -> int:
    return int(_one(conn, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))


def server_seconds(server: TemporaryServer) -> float:
    """Processor time of the server so far, all its processes together, from /proc."""
    return processor_seconds(int((server.data / "postmaster.pid").read_text().split()[0]))


def check(conn: Connection) -> None:
    """Exits if an invariant is violated: the figures would be meaningless."""
    broken = conn.execute("select * from ff_check_invariants()").fetchall()
    if broken:
        sys.exit(f"the invariants are broken: {broken[:3]}")


def complete_all(conn: Connection, lane: str, size: int = 1000) -> int:
    """Claims and completes until the lane has nothing ready; returns how many."""
    done = 0
    while count := drain(conn, lane, size):
        done += count
    return done


def drain(conn: Connection, lane: str, size: int) -> int:
    """One claim of `size` and its completion."""
    row = conn.execute(
        "select count(*) from ff_complete_many((select coalesce(array_agg(c.handle), '{}')"
        " from ff_claim_many(%s, 'w', 'w1', %s) c)) d where d.outcome = 'completed'",
        (lane, size),
        prepare=True,
    ).fetchone()
    return int(row[0]) if row else 0


def create(conn: Connection, lane: str, count: int, options: str = "") -> None:
    """Creates executions, at most 1000 per call. options: further arguments, as SQL."""
    for start in range(0, count, 1000):
        size = min(1000, count - start)
        row = conn.execute(
            "select count(*) from ff_create_executions(%s, array_fill('\\x0102030405060708'::bytea,"  # noqa: S608
            f" array[%s::int]){options})",
            (lane, size),
            prepare=True,
        ).fetchone()
        if row != (size,):
            sys.exit(f"{row} instead of {size} executions were created on {lane}")


def _one(conn: Connection, query: str) -> Any:  # noqa: ANN401
    row = conn.execute(query).fetchone()
    return row[0] if row else None
