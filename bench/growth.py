"""How the cost of a claim grows: with ready rows, with rows ahead that the worker cannot run or does not ask for, with
the capability sets that it covers, with lanes, with retained rows, and with a transaction that keeps dead rows from
being removed."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from statistics import mean, median

import psycopg

from bench.process import thread_seconds
from bench.server import (
    SETTINGS,
    Connection,
    complete_all,
    create,
    database,
    drain,
    head,
    p99,
    pgbench,
)
from pyff.postgres import TemporaryServer, temporary

CLAIM = "select handle from ff_claim('grow', 'w', 'w1'{})"
FEW = 1_000
SETS = 1_000
LATE = 100
WARM = 20
CLAIMS = 300


@dataclass(frozen=True)
class Fill:
    """Rows to create on the lane. options: further arguments as SQL, in which {n} numbers `sets` equal parts."""

    count: int
    priority: int = 0
    options: str = ""
    sets: int = 1

    def run(self, conn: Connection) -> None:
        size = self.count // self.sets
        for n in range(self.sets):
            for start in range(0, size, 1000):
                part = min(1000, size - start)
                given = f", p_priorities => array_fill({self.priority}, array[{part}])"
                create(conn, "grow", part, given + self.options.format(n=n))


@dataclass(frozen=True)
class Case:
    """One line of a scenario. claimed_by: arguments of the claim; lanes: how many others have one row."""

    name: str
    fills: tuple[Fill, ...] = (Fill(FEW),)
    claimed_by: str = ""
    lanes: int = 0
    ended: int = 0


def scenarios(rows: int) -> dict[str, list[Case]]:
    """By name; `rows` is the largest size, by default 1000000."""
    few = Fill(FEW)
    gpu = Fill(rows, 9, ", p_required_capabilities => array['gpu']")
    many = Fill(rows, 9, ", p_required_capabilities => array['c{n}']", SETS)
    mine = Fill(FEW, 0, ", p_namespace => 'mine'")
    by_mine = ", p_namespace => 'mine'"
    wide = ", p_capabilities => array['t1', 't2', 't3', 't4', 't5', 't6']"
    lanes, foreign = rows // 100, rows // 10
    return {
        "ready": [Case(f"{n} ready rows", (Fill(n),)) for n in sorted({FEW, max(FEW, rows // 10), rows})],
        "unmatched": [
            Case("nothing ahead"),
            Case(f"{rows} rows ahead of one other set", (few, gpu)),
            Case(
                f"{rows} rows ahead of one other set, worker has another",
                (few, gpu),
                ", p_capabilities => array['arm']",
            ),
            Case(
                f"{rows} rows ahead of {SETS} other sets",
                (few, many),
                ", p_capabilities => array['arm', 'x86']",
            ),
            Case(f"{rows} rows ahead of {SETS} other sets, worker has 6 tokens", (few, many), wide),
        ],
        "sets": [_covered(a, b, max(FEW, rows * 3 // 10)) for a, b in ((1, 1), (5, 6), (15, 20))],
        "lanes": [Case("1 lane"), Case(f"{lanes} lanes", lanes=lanes)],
        "namespace": [
            Case("nothing ahead", (mine,), by_mine),
            Case(f"{foreign} rows of another namespace ahead", (mine, Fill(foreign, 9)), by_mine),
        ],
        "retained": [Case("nothing retained"), Case(f"{rows} ended rows retained", ended=rows)],
        "horizon": [],
    }


def _covered(a: int, b: int, rows: int) -> Case:
    """a * b sets of two tokens, of which the worker has all: it may have 256 tokens."""
    pairs = f"array['a' || {{n}} %% {a}, 'b' || {{n}} / {a} %% {b}]"
    tokens = ", ".join([f"'a{n}'" for n in range(a)] + [f"'b{n}'" for n in range(b)])
    fill = Fill(rows, 0, f", p_required_capabilities => {pairs}", a * b)
    return Case(f"{a * b} sets, all covered by the worker", (fill,), f", p_capabilities => array[{tokens}]")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run growth", description=__doc__)
    parser.add_argument("--only", choices=scenarios(FEW), help="one of the scenarios")
    parser.add_argument(
        "--rows",
        type=int,
        default=1_000_000,
        help="the largest size (default 1000000, at least 1000); the other sizes follow it in proportion",
    )
    parser.add_argument("--seconds", type=int, default=60, help="how long the horizon is held (default 60)")
    parser.add_argument("--clients", type=int, default=16, help="clients under the held horizon (default 16)")
    args = parser.parse_args(argv)
    if args.rows < FEW:
        parser.error(f"--rows: at least {FEW}")
    with temporary(**SETTINGS) as server:
        head(server, f"{CLAIMS} claims by one session; us: processor time of its backend per claim\n")
        print(f"{'':69}{'p50 ms':>8}{'p99 ms':>8}{'us':>8}{'ratio':>8}")
        for scenario, cases in scenarios(args.rows).items():
            if args.only in (None, scenario):
                if scenario == "horizon":
                    _horizon(server, args.seconds, args.clients)
                _lines(server, scenario, cases)
    return 0


def _lines(server: TemporaryServer, scenario: str, cases: list[Case]) -> None:
    base = 0.0
    for case in cases:
        with database(server) as conn:
            conn.execute("set synchronous_commit = off")
            if case.ended:
                create(conn, "grow", case.ended)
                complete_all(conn, "grow")
            for fill in case.fills:
                fill.run(conn)
            conn.execute(
                "select count(*) from generate_series(2, %s) n,"
                " lateral ff_create_execution(p_lane_id => 'lane-' || n, p_payload => '\\x01')",
                (case.lanes,),
            )
            conn.execute("set synchronous_commit = on")
            conn.execute("vacuum analyze")
            conn.execute("checkpoint")
            _claims(conn, case.claimed_by, WARM)
            spent = thread_seconds(conn.info.backend_pid)
            times = _claims(conn, case.claimed_by, CLAIMS)
            cpu_us = 1e6 * (thread_seconds(conn.info.backend_pid) - spent) / CLAIMS
        base = base or cpu_us
        print(
            f"{scenario:10} {case.name:58}{median(times):8.2f}{p99(times):8.2f}{cpu_us:8.0f}{cpu_us / base:8.2f}",
            flush=True,
        )


def _claims(conn: Connection, claimed_by: str, count: int) -> list[float]:
    times = []
    for n in range(count):
        start = time.perf_counter()
        found = conn.execute(CLAIM.format(claimed_by), prepare=True).fetchone()
        times.append((time.perf_counter() - start) * 1000)
        if found is None:
            sys.exit(f"claim {n} found nothing although work is ready")
    return times


def _horizon(server: TemporaryServer, seconds: int, clients: int) -> None:
    """Cycles per second over the last third of a run, with a snapshot held for the whole of it and without."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    third = max(1, seconds // 3)
    claimed = 0
    for held in (False, True, False):
        with database(server) as conn:
            create(conn, "bench", 10_000)
            conn.execute("vacuum analyze")
            with _snapshot(conn) if held else nullcontext():
                # A claim that finds nothing ends pgbench with an error: 10 000 rows are ready at any time.
                pgbench(conn, "hotpath_single.sql", clients, max(1, seconds - third))
                run = pgbench(conn, "hotpath_single.sql", clients, third)
                claimed += _empty_claims(conn) if held else 0
            rates[held].append(run.per_s)
    free, kept = mean(rates[False]), rates[True][0]
    print(
        f"horizon    last {third} of {seconds} s at {clients} clients: held {kept:.0f}, not held {free:.0f} cycles/s,"
        f" ratio {kept / free:.2f}\n"
        f"horizon    no claim found nothing while work was ready: {claimed} claimed one by one and in batches until"
        f" nothing was left",
        flush=True,
    )


def _empty_claims(conn: Connection) -> int:
    """Ends with an error if a claim finds nothing while work is ready. Returns how many were claimed.

    First until the lane is empty, then rows that arrive on the empty lane, of high and of low priority.
    """
    claimed = _until_nothing(conn)
    for n in range(LATE):
        create(conn, "bench", 1 + n % 3, f", p_priorities => array_fill({(n * 7) % 10}, array[{1 + n % 3}])")
        claimed += _until_nothing(conn)
    return claimed


def _until_nothing(conn: Connection) -> int:
    claimed = calls = 0
    while count := drain(conn, "bench", 100 if calls % 2 else 1):
        claimed, calls = claimed + count, calls + 1
    left = conn.execute("select ready from ff_v_lane_stats where lane_id = 'bench'").fetchone()
    if left is None or left[0]:
        sys.exit(f"a claim found nothing while {left} rows were ready")
    return claimed


@contextmanager
def _snapshot(conn: Connection) -> Iterator[None]:
    """Another session holds a snapshot: rows that die from now on stay."""
    with psycopg.connect(conn.info.dsn) as other:
        other.execute("set transaction isolation level repeatable read")
        other.execute("select count(*) from pg_class")
        yield


if __name__ == "__main__":
    sys.exit(main())
