"""One cycle (create, claim, complete) against the raw-SQL limit: the same server, the same minute, the same clients."""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, find, temporary

SQL = Path(__file__).parent / "sql"
BATCH = 100
SETTINGS = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "512MB"}


@dataclass(frozen=True)
class Run:
    """What one pgbench run measured, per cycle of one execution; calls: the mean of each call, in ms."""

    cycles_per_s: float
    p50_ms: float
    p99_ms: float
    wal_bytes: float
    rows_written: float
    calls_ms: tuple[float, ...]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="length of each run (default 10)")
    parser.add_argument("--clients", default="1,4,16", help="comma-separated (default 1,4,16)")
    parser.add_argument(
        "--rounds", type=int, default=2, help="interleaved repetitions; the median round counts (default 2)"
    )
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        _prepare(server)
        head(server, "ratio = pyff / limit; calls: mean ms of create, claim, complete\n")
        print(
            f"{'':14}{'cycles/s':>17}{'ratio':>7}{'p50 ms':>15}{'p99 ms':>16}{'WAL bytes':>15}{'rows':>11}"
            f"{'create':>15}{'claim':>15}{'complete':>15}"
        )
        for shape, size in (("single", 1), ("batch", BATCH)):
            for clients in map(int, args.clients.split(",")):
                runs: dict[str, list[Run]] = {"limit": [], "hotpath": []}
                for _ in range(args.rounds):
                    for subject, found in runs.items():
                        found.append(
                            pgbench(server, f"{subject}_{shape}.sql", clients, args.seconds, size=size)
                        )
                middle = {s: sorted(f, key=lambda r: r.cycles_per_s)[len(f) // 2] for s, f in runs.items()}
                _row(shape, clients, middle["limit"], middle["hotpath"])
    return 0


def _prepare(server: TemporaryServer) -> None:
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
        before = _counters(conn)
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
        after = _counters(conn)
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


def _row(shape: str, clients: int, limit: Run, pyff: Run) -> None:
    def pair(a: float, b: float, digits: int = 0) -> str:
        return f"{a:.{digits}f} / {b:.{digits}f}"

    calls = "".join(f"{pair(a, b, 2):>15}" for a, b in zip(pyff.calls_ms, limit.calls_ms, strict=True))
    print(
        f"{shape:7}{clients:3} cl.{pair(pyff.cycles_per_s, limit.cycles_per_s):>17}"
        f"{pyff.cycles_per_s / limit.cycles_per_s:>7.2f}"
        f"{pair(pyff.p50_ms, limit.p50_ms, 2):>15}{pair(pyff.p99_ms, limit.p99_ms, 2):>16}"
        f"{pair(pyff.wal_bytes, limit.wal_bytes):>15}{pair(pyff.rows_written, limit.rows_written, 1):>11}{calls}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
