"""One cycle (create, claim, complete) against the raw-SQL limit: the same server, the same minute, the same clients."""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from bench.process import processor_seconds
from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, find, temporary

SQL = Path(__file__).parent / "sql"
BATCH = 100
SETTINGS = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "512MB"}


@dataclass(frozen=True)
class Run:
    """What one pgbench run measured, per cycle of one execution. calls: the mean of each call, in ms."""

    cycles_per_s: float
    p50_ms: float
    p99_ms: float
    server_us: float
    wal_bytes: float
    rows_written: float
    calls_ms: tuple[float, ...]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("--seconds", type=int, default=4, help="length of each run (default 4)")
    parser.add_argument("--clients", default="1,4,16", help="comma-separated (default 1,4,16)")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs, limit then pyff (default 5)")
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        prepare(server)
        head(
            server,
            "every pair is pyff / limit, the median of its runs; ratio: the median of the ratios of the pairs;\n"
            "server us: processor time of all server processes per cycle; calls: mean ms of create, claim, complete\n",
        )
        print(
            f"{'':14}{'cycles/s':>17}{'ratio':>7}{'p50 ms':>15}{'p99 ms':>16}{'server us':>13}{'WAL bytes':>15}"
            f"{'rows':>11}{'create':>15}{'claim':>15}{'complete':>15}"
        )
        for shape, size in (("single", 1), ("batch", BATCH)):
            for clients in map(int, args.clients.split(",")):
                pairs = [
                    tuple(
                        pgbench(server, f"{subject}_{shape}.sql", clients, args.seconds, size=size)
                        for subject in ("limit", "hotpath")
                    )
                    for _ in range(args.rounds)
                ]
                _row(shape, clients, *map(list, zip(*pairs, strict=True)))
        _drain(server)
    return 0


def prepare(server: TemporaryServer) -> None:
    """The limit's table and a little work for both."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        for name in ("limit_setup.sql", "hotpath_setup.sql"):
            conn.execute((SQL / name).read_bytes())
        conn.execute("vacuum analyze")


def pgbench(
    server: TemporaryServer,
    script: str,
    clients: int,
    seconds: int,
    *,
    size: int = 1,
    dbname: str | None = None,
) -> Run:
    """Runs one script of bench/sql; each of its transactions is a cycle of `size` executions."""
    dsn = make_conninfo(server.dsn, dbname=dbname) if dbname else server.dsn
    with psycopg.connect(dsn, autocommit=True) as conn, tempfile.TemporaryDirectory() as logs:
        conn.execute("checkpoint")
        before, worked = _counters(conn), server_seconds(server)
        command = [
            server.bindir / "pgbench",
            *("-n", "-r", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(seconds)),
            *("-l", "--log-prefix", f"{logs}/log", "-f", SQL / script, dsn),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **find().env}
        )
        if done.returncode != 0:
            sys.exit(f"pgbench failed: {done.stderr}")
        after, worked = _counters(conn), server_seconds(server) - worked
        latencies = sorted(
            int(line.split()[2]) / 1000
            for log in Path(logs).iterdir()
            for line in log.read_text().splitlines()
        )
    cycles = len(latencies) * size
    statements = re.findall(r"^ +(\d+\.\d+) +\d+ +\S", done.stdout, re.M)
    return Run(
        cycles / seconds,
        statistics.median(latencies),
        latencies[int(len(latencies) * 0.99)],
        worked / cycles * 1e6,
        (after[0] - before[0]) / cycles,
        (after[1] - before[1]) / cycles,
        tuple(map(float, statements)),
    )


def _counters(conn: psycopg.Connection[tuple[object, ...]]) -> tuple[int, int]:
    conn.execute("select pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
    row = conn.execute(
        "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn, sum(n_tup_ins + n_tup_upd + n_tup_del)"
        " from pg_stat_user_tables"
    ).fetchone()
    assert row is not None  # noqa: S101
    return int(str(row[0])), int(str(row[1]))


def head(server: TemporaryServer, what: str) -> None:
    with psycopg.connect(server.dsn) as conn:
        version = conn.info.parameter_status("server_version")
    print(f"PostgreSQL {version}, {', '.join(f'{k} {v}' for k, v in SETTINGS.items())}; {what}", flush=True)


def server_seconds(server: TemporaryServer) -> float:
    """Processor time of the server so far, all its processes together."""
    return processor_seconds(int((server.data / "postmaster.pid").read_text().split()[0]))


def _row(shape: str, clients: int, limits: list[Run], subjects: list[Run]) -> None:
    def middle(value: Callable[[Run], float], digits: int = 0) -> str:
        return " / ".join(f"{statistics.median(map(value, runs)):.{digits}f}" for runs in (subjects, limits))

    ratio = statistics.median(
        s.cycles_per_s / limit.cycles_per_s for s, limit in zip(subjects, limits, strict=True)
    )
    calls = "".join(f"{middle(lambda run, n=n: run.calls_ms[n], 2):>15}" for n in range(3))
    print(
        f"{shape:7}{clients:3} cl.{middle(lambda run: run.cycles_per_s):>17}{ratio:>7.2f}"
        f"{middle(lambda run: run.p50_ms, 2):>15}{middle(lambda run: run.p99_ms, 2):>16}"
        f"{middle(lambda run: run.server_us):>13}{middle(lambda run: run.wal_bytes):>15}"
        f"{middle(lambda run: run.rows_written, 1):>11}{calls}",
        flush=True,
    )


def _drain(server: TemporaryServer, batches: int = 40, size: int = 500) -> None:
    """Server time per task: created in batches, then claimed and completed in batches by one session."""
    create = "select count(*) from ff_create_executions('drain', array_fill('\\x01'::bytea, array[%s::int]))"
    drain = (
        "select count(*) from ff_complete_many((select array_agg(c.handle)"
        " from ff_claim_many('drain', 'w', 'w1', %s) c))"
    )
    found = []
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        for query in (create, drain):
            worked = server_seconds(server)
            for _ in range(batches):
                row = conn.execute(query, (size,), prepare=True).fetchone()
                if row != (size,):
                    sys.exit(f"{query}: {row} instead of {size}")
            found.append((server_seconds(server) - worked) / batches / size * 1e6)
    print(
        f"batches of {size}, one session, server us per task: create {found[0]:.1f}, claim and complete {found[1]:.1f}"
    )


if __name__ == "__main__":
    sys.exit(main())
