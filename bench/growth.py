"""How the cost of a claim grows: with ready rows, with rows ahead that the worker cannot run or does not ask for, with
the capability sets that it covers, with lanes, with retained rows, and with a transaction that keeps dead rows from
being removed."""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bench.hotpath import SETTINGS, head, pgbench
from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, temporary

CLAIM = "select handle from ff_claim(p_lane_id => 'grow', p_worker_id => 'w', p_worker_instance_id => 'w1'{})"
CHUNK = 1000
NAMESPACE = "'{}', p_namespace => 'mine'"
FILL = """
    select count(*) from ff_create_executions({lane}, array_fill('\\x01'::bytea, array[1000]),
                                              p_priorities => array_fill(%(priority)s, array[1000]) {options})
"""
SCENARIOS = ("ready", "unmatched", "sets", "lanes", "namespace", "retained", "horizon")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run growth", description=__doc__)
    parser.add_argument("--only", choices=SCENARIOS, help="one of the scenarios")
    parser.add_argument("--rows", type=int, default=1_000_000, help="the largest size (default 1000000)")
    parser.add_argument("--seconds", type=int, default=60, help="how long the horizon is held (default 60)")
    parser.add_argument("--clients", type=int, default=16, help="clients under the held horizon (default 16)")
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        head(server, "claim: p50 and p99 in ms over 300 claims, ratio of p50 to the first line\n")
        for scenario in SCENARIOS:
            if args.only in (None, scenario):
                _scenario(server, scenario, args)
    return 0


def _scenario(server: TemporaryServer, scenario: str, args: argparse.Namespace) -> None:
    if scenario == "horizon":
        _horizon(server, args.seconds, args.clients)
        return
    base: float | None = None
    for name, fill, capabilities in _sizes(scenario, args.rows):
        with _database(server) as conn:
            for count, priority, options in fill:
                _fill(conn, count, priority, options)
            if scenario == "lanes":
                _open_lanes(conn, int(name.split()[0]))
            if scenario == "retained":
                _end_all(conn)
                _fill(conn, CHUNK)
            conn.execute("vacuum analyze")
            median, worst = _claims(conn, capabilities)
            base = base or median
            print(f"{scenario:10} {name:44}{median:8.2f}{worst:8.2f}{median / base:8.2f}", flush=True)


def _sizes(scenario: str, rows: int) -> Iterator[tuple[str, list[tuple[int, int, str]], str]]:
    """Names, what to fill the lane with (count, priority, options), and the worker's capabilities."""
    if scenario == "ready":
        for count in (1_000, 100_000, rows):
            yield f"{count} ready rows", [(count, 0, "")], ""
    elif scenario == "unmatched":
        few = [(1_000, 0, "")]
        yield "nothing ahead", few, ""
        gpu = (rows, 9, ", p_required_capabilities => array['gpu']")
        yield f"{rows} rows ahead of one other set", [*few, gpu], ""
        yield f"{rows} rows ahead of one other set, worker has another", [*few, gpu], "array['arm']"
        sets = (rows, 9, ", p_required_capabilities => array['c' || %(chunk)s::text]")
        yield f"{rows} rows ahead of {rows // CHUNK} other sets", [*few, sets], "array['arm', 'x86']"
        wide = "array['t1', 't2', 't3', 't4', 't5', 't6']"
        yield f"{rows} rows ahead of {rows // CHUNK} other sets, worker has 6 tokens", [*few, sets], wide
    elif scenario == "sets":
        for a, b in ((1, 1), (5, 6), (15, 20)):  # sets of two tokens: a worker may have 256
            pair = f"array['a' || %(chunk)s::int %% {a}, 'b' || %(chunk)s::int / {a} %% {b}]"
            held = "array[" + ", ".join([f"'a{n}'" for n in range(a)] + [f"'b{n}'" for n in range(b)]) + "]"
            yield (
                f"{a * b} sets, all covered by the worker",
                [(300_000, 0, f", p_required_capabilities => {pair}")],
                held,
            )
    elif scenario == "lanes":
        for lanes in (1, 10_000):
            yield f"{lanes} lanes", [(1_000, 0, "")], ""
    elif scenario == "namespace":
        mine = ", p_namespace => 'mine'"
        yield "nothing ahead", [(1_000, 0, mine)], NAMESPACE
        yield "100000 rows of another namespace ahead", [(1_000, 0, mine), (100_000, 9, "")], NAMESPACE
    else:
        yield "nothing retained", [(1_000, 0, "")], ""
        yield f"{rows} ended rows retained", [(rows, 0, "")], ""


def _fill(
    conn: psycopg.Connection[tuple[object, ...]],
    count: int,
    priority: int = 0,
    options: str = "",
    *,
    lane: str = "grow",
) -> None:
    query = FILL.format(lane=f"'{lane}'", options=options)
    with conn.transaction():
        for chunk in range(count // CHUNK):
            conn.execute(query, {"priority": priority, "chunk": chunk})
    found = conn.execute("select count(*) from ff_exec_core where priority = %s", (priority,)).fetchone()
    if found is None or int(str(found[0])) < count:
        sys.exit(f"only {found} of {count} rows were made")


def _open_lanes(conn: psycopg.Connection[tuple[object, ...]], count: int) -> None:
    conn.execute(
        "select count(*) from generate_series(1, %s) n,"
        " lateral ff_create_execution(p_lane_id => 'lane-' || n, p_payload => '\\x01')",
        (count,),
    )


def _end_all(conn: psycopg.Connection[tuple[object, ...]]) -> None:
    while True:
        ended = conn.execute(
            "select count(*) from ff_complete_many((select coalesce(array_agg(c.handle), '{}')"
            " from ff_claim_many('grow', 'w', 'w1', 1000) c))"
        ).fetchone()
        if ended is None or not ended[0]:
            return


def _claims(conn: psycopg.Connection[tuple[object, ...]], capabilities: str) -> tuple[float, float]:
    query = CLAIM.format(f", p_capabilities => {capabilities}" if capabilities else "")
    times = []
    for n in range(320):
        start = time.perf_counter()
        found = conn.execute(query, prepare=True).fetchone()
        times.append((time.perf_counter() - start) * 1000)
        if found is None:
            sys.exit(f"nothing was claimed ({n})")
    times = sorted(times[20:])
    return statistics.median(times), times[int(len(times) * 0.99)]


def _horizon(server: TemporaryServer, seconds: int, clients: int) -> None:
    """Cycles per second over the last third of a run, with a snapshot held for the whole of it and without."""
    rates = {}
    for held in (False, True, False):
        with _database(server) as conn:
            _fill(conn, 10 * CHUNK, lane="bench")
            conn.execute("vacuum analyze")
            with _snapshot(conn.info.dsn) if held else _nothing():
                pgbench(server, "hotpath_single.sql", clients, seconds * 2 // 3, dbname=conn.info.dbname)
                run = pgbench(server, "hotpath_single.sql", clients, seconds // 3, dbname=conn.info.dbname)
            rates.setdefault(held, []).append(run.cycles_per_s)
    free, kept = statistics.mean(rates[False]), rates[True][0]
    print(
        f"horizon    last {seconds // 3} of {seconds} s at {clients} clients: held {kept:.0f}, not held"
        f" {free:.0f} cycles/s, ratio {kept / free:.2f}",
        flush=True,
    )


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select count(*) from ff_exec_core")
        yield


@contextmanager
def _database(server: TemporaryServer) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    name = "growth"
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(f"drop database if exists {name} with (force)")
        admin.execute(f"create database {name}")
    dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname=name)
    migrate(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


if __name__ == "__main__":
    sys.exit(main())
