"""Usage reports per second, on one hot budget and on 16, against the limit: an update of one counter of that row.

A report takes the fence of its lease and adds to a dimension under the budget's lock. On one budget, both stand in line
for one row until the other's commit is on disk.
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
SUBJECTS = {
    "one budget": ("budget_one.sql", "budget_limit_one.sql"),
    "16 budgets": ("budget_many.sql", "budget_limit_many.sql"),
    "16, two dimensions, key": ("budget_keyed.sql", "budget_limit_many.sql"),
}


@dataclass(frozen=True)
class Run:
    """What one pgbench run measured."""

    per_s: float
    p50_ms: float
    p99_ms: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/run budgets", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="length of each run (default 10)")
    parser.add_argument("--clients", default="1,16", help="comma-separated, at most 16 (default 1,16)")
    parser.add_argument(
        "--rounds", type=int, default=2, help="interleaved repetitions; the best counts (default 2)"
    )
    args = parser.parse_args()
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute((SQL / "budget_setup.sql").read_bytes())
            version = conn.info.parameter_status("server_version")
        print(f"PostgreSQL {version}, {', '.join(f'{k} {v}' for k, v in SETTINGS.items())}")
        print(f"\n{'':36}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}{'limit':>9}{'ratio':>7}")
        for name, scripts in SUBJECTS.items():
            for clients in map(int, args.clients.split(",")):
                runs: list[list[Run]] = [[], []]
                for _ in range(args.rounds):
                    for script, found in zip(scripts, runs, strict=True):
                        found.append(_measure(server, script, clients, args.seconds))
                ours, limit = (max(found, key=lambda run: run.per_s) for found in runs)
                print(
                    f"{name:24}{clients:4} clients{ours.per_s:>9.0f}{ours.p50_ms:>9.2f}{ours.p99_ms:>9.2f}"
                    f"{limit.per_s:>9.0f}{ours.per_s / limit.per_s:>7.2f}",
                    flush=True,
                )
        _check(server)
    return 0


def _measure(server: TemporaryServer, script: str, clients: int, seconds: int) -> Run:
    with tempfile.TemporaryDirectory() as logs:
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
        found = sorted(
            int(line.split()[2]) / 1000
            for log in Path(logs).iterdir()
            for line in log.read_text().splitlines()
        )
    return Run(len(found) / seconds, statistics.median(found), found[int(len(found) * 0.99)])


def _check(server: TemporaryServer) -> None:
    with psycopg.connect(server.dsn) as conn:
        broken = conn.execute("select * from ff_check_invariants()").fetchall()
    if broken:
        sys.exit(f"the run broke the database: {broken}")


if __name__ == "__main__":
    sys.exit(main())
