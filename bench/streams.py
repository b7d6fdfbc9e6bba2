"""Streams and events: appends per second, what events cost a transition, how long an event takes to its subscriber."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

import pyff
from pyff.migrate import migrate
from pyff.postgres import TemporaryServer, find, temporary

SQL = Path(__file__).parent / "sql"
SETTINGS = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "512MB"}
FAMILIES = ("completion", "lease", "suspension", "signal", "operator", "worker", "flow")
RATE = 20  # events per second while latency is measured


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/run streams", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="length of each run (default 10)")
    parser.add_argument("--clients", default="1,4,16", help="comma-separated (default 1,4,16)")
    parser.add_argument(
        "--rounds", type=int, default=2, help="interleaved repetitions; the best counts (default 2)"
    )
    args = parser.parse_args()
    clients = [int(number) for number in args.clients.split(",")]
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        with psycopg.connect(server.dsn, autocommit=True) as conn:
            version = conn.info.parameter_status("server_version")
            for name in ("append_setup.sql", "hotpath_setup.sql"):
                conn.execute((SQL / name).read_bytes())
        print(f"PostgreSQL {version}, {', '.join(f'{k} {v}' for k, v in SETTINGS.items())}")
        _appends(server, clients, args.seconds, args.rounds)
        _events(server, clients, args.seconds, args.rounds)
        _latency(server, args.seconds)
    return 0


def _appends(server: TemporaryServer, clients: Sequence[int], seconds: int, rounds: int) -> None:
    print(f"\nappends of 32 bytes{'':9}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}")
    for script, name in (("append_one.sql", "one stream"), ("append_many.sql", "100 streams")):
        for number in clients:
            found = max((_pgbench(server, script, number, seconds) for _ in range(rounds)), key=len)
            print(f"{name:16}{number:3} clients{len(found) / seconds:>9.0f}{_spread(found)}", flush=True)


def _events(server: TemporaryServer, clients: Sequence[int], seconds: int, rounds: int) -> None:
    """Create, claim, complete: three events and three transitions, with and without the events."""
    print(f"\none cycle{'':19}{'per s':>9}{'p50 ms':>9}{'p99 ms':>9}")
    for number in clients:
        runs: dict[str, list[list[float]]] = {"written": [], "muted": []}
        for _ in range(rounds):
            for how, found in runs.items():
                _mute(server, ["*"] if how == "muted" else [])
                found.append(_pgbench(server, "hotpath_single.sql", number, seconds))
        best = {how: max(found, key=len) for how, found in runs.items()}
        for how, latencies in best.items():
            name = f"events {how}"
            rate = len(latencies) / seconds
            print(f"{name:16}{number:3} clients{rate:>9.0f}{_spread(latencies)}", flush=True)
        cost = statistics.median(best["written"]) - statistics.median(best["muted"])
        print(f"{'':16}an event costs {1000 * cost / 3:.0f} us at the median", flush=True)
    _mute(server, [])


def _mute(server: TemporaryServer, types: list[str]) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as conn:
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


def _pgbench(server: TemporaryServer, script: str, clients: int, seconds: int) -> list[float]:
    """The latencies of all transactions, in milliseconds."""
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
        return [
            int(line.split()[2]) / 1000
            for log in Path(logs).iterdir()
            for line in log.read_text().splitlines()
        ]


def _spread(latencies: Sequence[float]) -> str:
    ordered = sorted(latencies)
    return f"{statistics.median(ordered):>9.2f}{ordered[int(len(ordered) * 0.99)]:>9.2f}"


if __name__ == "__main__":
    sys.exit(main())
