"""Maintenance: the cost of an idle ff_tick, empty and with a million executions, and the speed of the sweeps.

Idle is measured twice: nothing due by interval, as a thousand workers would call it; every step run and nothing found
(p_force). Each as time and as rows and blocks read. The sweeps run through backlogs of expired leases, delays that
ended and deadlines that passed, in batches of 200 and of 2000, each batch a transaction.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import psycopg

from bench.server import SETTINGS, Connection, check, complete_all, create, head
from pyff.migrate import migrate
from pyff.postgres import temporary


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run tick", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="executions about (default 1000000)")
    parser.add_argument("--backlog", type=int, default=20_000, help="rows per sweep (default 20000)")
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        head(server)
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            conn.execute("set max_parallel_workers_per_gather = 0")
            print(f"{'idle ff_tick':34} {'p50 ms':>8} {'p95 ms':>8} {'rows read':>10} {'blocks':>8}")
            _idle(conn, "empty database")
            _fill(conn, args.rows)
            _idle(conn, f"{args.rows} executions")
            print(f"\n{'sweep':34} {'batch':>8} {'rows/s':>8}")
            for name, prepare in SWEEPS.items():
                for limit in (200, 2000):
                    _sweep(conn, name, prepare, args.backlog, limit)
            check(conn)
    return 0


def _idle(conn: Connection, about: str) -> None:
    # No step becomes due by its interval.
    conn.execute("select ff_set_reconciler(m.name, p_interval_ms => 86400000) from ff_v_maintenance m")
    conn.execute("select ff_tick(p_force => true)")
    for what, call in {
        "nothing due": "select ff_tick()",
        "every step forced": "select ff_tick(p_force => true)",
    }.items():
        times = []
        for _ in range(200):
            start = time.perf_counter()
            conn.execute(call)
            times.append((time.perf_counter() - start) * 1000)
        rows, blocks = _read(conn, call)
        p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
        print(f"{f'{what}, {about}':34} {p50:8.2f} {p95:8.2f} {rows:10} {blocks:8}", flush=True)


def _read(conn: Connection, call: str) -> tuple[int, int]:
    """Rows read from tables and indexes, and blocks touched."""
    counted = """
        select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint from pg_stat_xact_user_tables
    """
    with conn.transaction():
        (before,) = _one(conn, counted)
        conn.execute(call)
        (after,) = _one(conn, counted)
    ((explained, *_),) = _one(conn, f"explain (analyze, buffers, timing off, format json) {call}")
    top = explained["Plan"]
    return after - before, top["Shared Hit Blocks"] + top["Shared Read Blocks"]


def _one(conn: Connection, statement: str) -> tuple[Any, ...]:
    (row,) = conn.execute(statement).fetchall()
    return tuple(row)


def _fill(conn: Connection, rows: int) -> None:
    """A quarter ready, a quarter delayed with a deadline, half of them ended and kept."""
    create(conn, "kept", rows // 2)
    complete_all(conn, "kept")
    create(conn, "ready", rows // 4)
    create(conn, "later", rows // 4, ", p_delay_ms => 86400000, p_deadline_at_ms => 4000000000000")
    conn.execute("vacuum analyze")


def _leases(conn: Connection, rows: int) -> None:
    create(conn, "leases", rows)
    for _ in range(0, rows, 1000):
        conn.execute(
            "select count(*) from ff_claim_many('leases', 'w', 'w-1', p_limit => 1000, p_lease_ttl_ms => 1)"
        )


def _delays(conn: Connection, rows: int) -> None:
    create(conn, "delays", rows, ", p_delay_ms => 1")


def _deadlines(conn: Connection, rows: int) -> None:
    create(conn, "deadlines", rows, ', p_policy => \'{"timeout_policy": {"execution_deadline_ms": 1}}\'')


SWEEPS: dict[str, Callable[[Connection, int], None]] = {
    "sweep_expired_leases": _leases,
    "sweep_delayed": _delays,
    "sweep_deadlines": _deadlines,
}


def _sweep(
    conn: Connection, name: str, prepare: Callable[[Connection, int], None], rows: int, limit: int
) -> None:
    prepare(conn, rows)
    conn.execute("vacuum analyze")
    done, start = 0, time.perf_counter()
    more = True
    while more:
        count, more = _one(conn, f"select processed, more from ff_{name}({limit})")  # noqa: S608
        done += count
    seconds = time.perf_counter() - start
    print(f"{name:34} {limit:8} {done / seconds:8.0f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
