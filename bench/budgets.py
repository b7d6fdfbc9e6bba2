"""Usage reports per second, on one hot budget and on 16, against the limit: an update of one counter of that row.

A report checks the fence of its lease and adds to a dimension under the budget's lock. On one budget, both reports and
the limit wait for the previous commit.
"""

import argparse
import sys
from functools import partial

import psycopg

from bench.server import SETTINGS, best_of_turns, check, head, pgbench, run_sql
from pyff.migrate import migrate
from pyff.postgres import temporary

SUBJECTS = {
    "one budget": ("budget_one.sql", "budget_limit_one.sql"),
    "16 budgets": ("budget_many.sql", "budget_limit_many.sql"),
    "16, two dimensions, key": ("budget_keyed.sql", "budget_limit_many.sql"),
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run budgets", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="length of each run (default 10)")
    parser.add_argument("--clients", default="1,16", help="comma-separated, at most 16 (default 1,16)")
    parser.add_argument(
        "--rounds", type=int, default=2, help="runs of each, in turns; the best counts (default 2)"
    )
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        head(server)
        print(f"\n{'':36}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}{'limit':>9}{'ratio':>7}")
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            run_sql(conn, "budget_setup.sql")
            for name, scripts in SUBJECTS.items():
                for clients in map(int, args.clients.split(",")):
                    ours, limit = best_of_turns(
                        args.rounds,
                        [partial(pgbench, conn, script, clients, args.seconds) for script in scripts],
                    )
                    print(
                        f"{name:24}{clients:4} clients{ours.per_s:>9.0f}{ours.percentile(50):>9.2f}"
                        f"{ours.percentile(99):>9.2f}{limit.per_s:>9.0f}{ours.per_s / limit.per_s:>7.2f}",
                        flush=True,
                    )
            check(conn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
