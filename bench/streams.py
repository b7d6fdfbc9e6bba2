"""Streams and events: appends per second, the cost of events per transition, the latency to a subscriber."""

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial

import psycopg

import pyff
from bench.server import SETTINGS, Connection, Run, best_of_turns, head, p99, pgbench, run_sql
from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, temporary

FAMILIES = ("completion", "lease", "suspension", "signal", "operator", "worker", "flow")
RATE = 20  # events per second while latency is measured


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run streams", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="length of each run (default 10)")
    parser.add_argument("--clients", default="1,4,16", help="comma-separated (default 1,4,16)")
    parser.add_argument(
        "--rounds", type=int, default=2, help="interleaved repetitions; the best counts (default 2)"
    )
    args = parser.parse_args(argv)
    clients = [int(number) for number in args.clients.split(",")]
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        head(server)
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            run_sql(conn, "append_setup.sql", "hotpath_setup.sql")
            _appends(conn, clients, args.seconds, args.rounds)
            _events(conn, clients, args.seconds, args.rounds)
        _latency(server, args.seconds)
    return 0


def _appends(conn: Connection, clients: Sequence[int], seconds: int, rounds: int) -> None:
    print(f"\nappends of 32 bytes{'':9}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}")
    for script, name in (("append_one.sql", "one stream"), ("append_many.sql", "100 streams")):
        for number in clients:
            (run,) = best_of_turns(rounds, [partial(pgbench, conn, script, number, seconds)])
            print(f"{name:16}{number:3} clients{run.per_s:>9.0f}{_spread(run.latencies_ms)}", flush=True)


def _events(conn: Connection, clients: Sequence[int], seconds: int, rounds: int) -> None:
    """Create, claim, complete: three transitions, with their events and with all events muted."""
    print(f"\none cycle{'':19}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}")
    for number in clients:

        def cycles(muted: list[str], number: int = number) -> Run:
            _mute(conn, muted)
            return pgbench(conn, "hotpath_single.sql", number, seconds)

        written, muted = best_of_turns(rounds, [partial(cycles, []), partial(cycles, ["*"])])
        for name, run in (("events written", written), ("events muted", muted)):
            print(f"{name:16}{number:3} clients{run.per_s:>9.0f}{_spread(run.latencies_ms)}", flush=True)
        cost = (written.percentile(50) - muted.percentile(50)) / 3
        print(f"{'':16}an event costs {1000 * cost:.0f} us at the median", flush=True)
    _mute(conn, [])


def _mute(conn: Connection, types: list[str]) -> None:
    for family in FAMILIES:
        conn.execute("select ff_set_event_family(%s, %s)", [family, types])


def _latency(server: TemporaryServer, seconds: int) -> None:
    print(f"\ncommit to subscriber{'':17}{'p50 ms':>9}{'p99 ms':>9}")
    for name, options in (
        ("LISTEN", {"listen": True}),
        ("polling every 50 ms", {"listen": False, "poll_s": 0.05}),
        ("polling every second", {"listen": False}),
    ):
        print(f"{name:28}{'':9}{_spread(_delays(server, seconds, options))}", flush=True)


def _delays(server: TemporaryServer, seconds: int, options: dict[str, float]) -> list[float]:
    """Milliseconds from the end of each commit to the delivery of its event."""
    delivered: dict[int, float] = {}
    committed: dict[int, float] = {}
    count = seconds * RATE
    with pyff.Engine(server.dsn) as engine, pyff.Engine(server.dsn) as writer:
        eid = writer.create_execution("latency", priority=0).execution_id
        start = engine.event_cursor().cursor

        def follow() -> None:
            events = engine.subscribe("operator", after=start, execution_id=eid, **options)  # type: ignore[arg-type]
            for _, event in zip(range(count), events, strict=False):
                delivered[int(str((event.details or {})["new"]))] = time.perf_counter()

        reader = threading.Thread(target=follow)
        reader.start()
        time.sleep(0.5)
        for number in range(1, count + 1):
            writer.change_priority(eid, number)
            committed[number] = time.perf_counter()
            time.sleep(1 / RATE)
        reader.join()
    return [1000 * max(0.0, delivered[number] - at) for number, at in committed.items()]


def _spread(latencies: Sequence[float]) -> str:
    return f"{statistics.median(latencies):>9.2f}{p99(latencies):>9.2f}"


if __name__ == "__main__":
    sys.exit(main())
