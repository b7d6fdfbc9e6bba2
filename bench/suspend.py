"""The round trip of a suspension: suspend, deliver the signal, claim the resumed execution; beside the hot path.

Each client claims what another suspension has resumed, suspends it and delivers its signal: one round trip per
transaction of pgbench, in three statements. The hot path (create, claim, complete) runs on the same server, in turns.
"""

import argparse
import sys
from functools import partial

import psycopg

from bench.server import SETTINGS, Connection, Run, best_of_turns, check, create, head, pgbench, run_sql
from pyff.migrate import migrate
from pyff.postgres import temporary

FAMILIES = ("signal", "suspension")
SUBJECTS = ("hotpath", "commit", "tick")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run suspend", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="length of each run (default 10)")
    parser.add_argument("--clients", default="1,16", help="comma-separated (default 1,16)")
    parser.add_argument(
        "--rounds", type=int, default=2, help="runs of each, in turns; the best counts (default 2)"
    )
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        head(
            server,
            "suspend, deliver_signal, claim; the families notify at commit or at tick; ratio = to the hot path\n",
        )
        print(f"{'':26}{'per s':>9}{'ratio':>7}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'WAL bytes':>11}")
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            _prepare(conn)
            for clients in map(int, args.clients.split(",")):
                best = best_of_turns(
                    args.rounds,
                    [partial(_measure, conn, subject, clients, args.seconds) for subject in SUBJECTS],
                )
                for subject, run in zip(SUBJECTS, best, strict=True):
                    _row(subject, clients, run, best[0])
            check(conn)
    return 0


def _prepare(conn: Connection) -> None:
    run_sql(conn, "hotpath_setup.sql")
    conn.execute("select ff_seed_waitpoint_hmac_secret('bench')")
    # A limit of signals that the run cannot reach: the same executions are suspended again and again.
    create(conn, "waits", 2000, """, p_policy => '{"max_signals_per_execution": 2000000000}'""")


def _measure(conn: Connection, subject: str, clients: int, seconds: int) -> Run:
    """`subject`: the hot path, or when the families of suspension and signal notify."""
    if subject != "hotpath":
        for family in FAMILIES:
            conn.execute("select ff_set_event_family(%s, p_notify => %s)", [family, subject])
    conn.execute("vacuum analyze")
    script = "hotpath_single.sql" if subject == "hotpath" else "suspend.sql"
    return pgbench(conn, script, clients, seconds)


def _row(subject: str, clients: int, run: Run, hotpath: Run) -> None:
    print(
        f"{subject if subject == 'hotpath' else 'suspend, ' + subject:17}{clients:3} cl.".ljust(26)
        + f"{run.per_s:>9.0f}{run.per_s / hotpath.per_s:>7.2f}{run.percentile(50):>9.2f}"
        f"{run.percentile(95):>9.2f}{run.percentile(99):>9.2f}{run.wal_bytes:>11.0f}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
