"""The round trip of a suspension: suspend, deliver the signal, claim the resumed execution; beside the hot path.

Each client claims what another suspension has resumed, suspends it and delivers its signal: one round trip per
transaction of pgbench, in three statements. The hot path (create, claim, complete) runs on the same server, in turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, find, temporary

SQL = Path(__file__).parent / "sql"
SETTINGS = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "512MB"}
FAMILIES = "('signal', 'suspension')"


@dataclass(frozen=True)
class Run:
    """What one pgbench run measured, per round trip."""

    per_s: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    wal_bytes: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/run suspend", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="length of each run (default 10)")
    parser.add_argument("--clients", default="1,16", help="comma-separated (default 1,16)")
    parser.add_argument(
        "--rounds", type=int, default=2, help="interleaved repetitions; the best counts (default 2)"
    )
    args = parser.parse_args()
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        _prepare(server)
        _head(server)
        for clients in map(int, args.clients.split(",")):
            runs: dict[str, list[Run]] = {"hotpath": [], "commit": [], "tick": []}
            for _ in range(args.rounds):
                for subject, found in runs.items():
                    found.append(_measure(server, subject, clients, args.seconds))
            best = {subject: max(found, key=lambda run: run.per_s) for subject, found in runs.items()}
            for subject, run in best.items():
                _row(subject, clients, run, best["hotpath"])
        _check(server)
    return 0


def _prepare(server: TemporaryServer) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute((SQL / "hotpath_setup.sql").read_bytes())
        conn.execute("select ff_seed_waitpoint_hmac_secret('bench')")
        # A signal cap and a lease that the run cannot reach: the same executions go round and round.
        conn.execute(
            """select count(*) from ff_create_executions('waits', array_fill('\\x0102030405060708'::bytea, array[2000]),
                                                        p_policy => '{"max_signals_per_execution": 2000000000}')"""
        )
        conn.execute("vacuum analyze")


def _measure(server: TemporaryServer, subject: str, clients: int, seconds: int) -> Run:
    """`subject`: the hot path, or when the families of suspension and signal notify."""
    script = "hotpath_single.sql" if subject == "hotpath" else "suspend.sql"
    with psycopg.connect(server.dsn, autocommit=True) as conn, tempfile.TemporaryDirectory() as logs:
        if subject != "hotpath":
            conn.execute(f"update ff_event_family set notify = '{subject}' where family in {FAMILIES}")  # noqa: S608
        conn.execute("vacuum analyze")
        conn.execute("checkpoint")
        before = _wal(conn)
        command = [
            server.bindir / "pgbench",
            *("-n", "-M", "prepared", "-c", str(clients), "-j", "2", "-T", str(seconds)),
            *("-l", "--log-prefix", f"{logs}/log", "-f", SQL / script, server.dsn),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={**os.environ, **find().env}
        )
        if done.returncode != 0:
            sys.exit(f"pgbench failed: {done.stderr}")
        after = _wal(conn)
        latencies = sorted(
            int(line.split()[2]) / 1000
            for log in Path(logs).iterdir()
            for line in log.read_text().splitlines()
        )
    return Run(
        len(latencies) / seconds,
        statistics.median(latencies),
        latencies[int(len(latencies) * 0.95)],
        latencies[int(len(latencies) * 0.99)],
        (after - before) / len(latencies),
    )


def _wal(conn: psycopg.Connection[tuple[object, ...]]) -> int:
    row = conn.execute("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None  # noqa: S101
    return int(str(row[0]))


def _check(server: TemporaryServer) -> None:
    """A figure of a database that is not sound would be worth nothing."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        broken = conn.execute("select * from ff_check_invariants()").fetchall()
    if broken:
        sys.exit(f"the invariants are broken: {broken[:3]}")


def _head(server: TemporaryServer) -> None:
    with psycopg.connect(server.dsn) as conn:
        version = conn.info.parameter_status("server_version")
    print(f"PostgreSQL {version}, {', '.join(f'{k} {v}' for k, v in SETTINGS.items())}")
    print(
        "suspend, deliver_signal, claim; the families notify at commit or at tick; ratio = to the hot path\n"
    )
    print(f"{'':26}{'per s':>9}{'ratio':>7}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'WAL bytes':>11}")


def _row(subject: str, clients: int, run: Run, hotpath: Run) -> None:
    print(
        f"{subject if subject == 'hotpath' else 'suspend, ' + subject:17}{clients:3} cl.".ljust(26)
        + f"{run.per_s:>9.0f}{run.per_s / hotpath.per_s:>7.2f}{run.p50_ms:>9.2f}{run.p95_ms:>9.2f}"
        f"{run.p99_ms:>9.2f}{run.wal_bytes:>11.0f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
