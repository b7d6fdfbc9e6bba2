"""Admission: the throughput of one policy, and the cost of a full policy for other work on its lane."""

import argparse
import statistics
import sys
import threading
import time

import psycopg

from bench.server import SETTINGS, Connection, head
from pyff.engine import Engine
from pyff.migrate import migrate
from pyff.postgres import temporary

PARKED = 100_000
READY = """
    select count(*) from ff_v_execution e where e.ready_on = 'behind' and e.quota_policy_id is not null
"""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run admission", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="seconds per measurement (default 5)")
    parser.add_argument("--clients", type=int, default=16, help="clients of the hot policy (default 16)")
    parser.add_argument(
        "--parked", type=int, default=PARKED, help=f"rows of the full policy (default {PARKED})"
    )
    parser.add_argument("--only", choices=["hot", "parked"], help="one of the two")
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        head(server)
        if args.only != "parked":
            _hot(server.dsn, args.clients, args.seconds)
        if args.only != "hot":
            _parked(server.dsn, args.seconds, args.parked)
    return 0


def _hot(dsn: str, clients: int, seconds: float) -> None:
    """Claim and complete by many clients: without a policy, and through one that all of them share."""
    with psycopg.connect(dsn, autocommit=True) as conn, Engine(conn) as engine:
        engine.create_quota_policy("cap", max_concurrent=1000)
        engine.create_quota_policy("unlimited")
        engine.create_quota_policy("window", max_requests_per_window=10**9, window_seconds=1)
        plain = 0.0
        for lane, policy in (
            ("plain", None),
            ("unlimited", "unlimited"),
            ("cap", "cap"),
            ("window", "window"),
        ):
            for size in (1, 10):
                _fill(engine, f"{lane}{size}", policy, int(3000 * seconds * (2 if size > 1 else 1)))
                conn.execute("vacuum analyze")
                rate = _rate(dsn, f"{lane}{size}", clients, seconds, size)
                plain = rate if policy is None and size == 1 else plain
                print(
                    f"{clients} clients, {size} per claim, {lane}:"
                    f" {rate:.0f}/s, {rate / plain:.2f} of plain single claims",
                    flush=True,
                )


def _fill(engine: Engine, lane: str, policy: str | None, count: int, priority: int = 0) -> None:
    given = {"quota_policy_id": policy} if policy else {}
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        engine.create_executions(lane, [b""] * size, policy=given, priorities=[priority] * size)


def _rate(dsn: str, lane: str, clients: int, seconds: float, size: int) -> float:
    """Executions that were claimed and completed per second."""
    done = [0] * clients
    ready = threading.Barrier(clients + 1)
    stop = threading.Event()

    def work(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as conn, Engine(conn) as engine:
            ready.wait()
            while not stop.is_set():
                if size == 1:
                    lease = engine.claim(lane, "w", f"w-{number}")
                    if lease is None:  # another client has the policy locked
                        time.sleep(0.005)
                        continue
                    engine.complete(lease.handle)
                    done[number] += 1
                else:
                    leases = engine.claim_many(lane, "w", f"w-{number}", limit=size)
                    engine.complete_many([lease.handle for lease in leases])
                    done[number] += len(leases)

    threads = [threading.Thread(target=work, args=[number]) for number in range(clients)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.monotonic()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - began)


def _parked(dsn: str, seconds: float, parked: int) -> None:
    """Claims of plain work on a lane where a full policy has many in front, and on an empty one."""
    with psycopg.connect(dsn, autocommit=True) as conn, Engine(conn) as engine:
        engine.create_quota_policy("full", max_concurrent=1)
        engine.create_execution("elsewhere", policy={"quota_policy_id": "full"})
        if engine.claim("elsewhere", "w", "w-1", lease_ttl_ms=86_400_000) is None:
            sys.exit("the policy is not full")
        _fill(engine, "alone", None, int(2000 * seconds))
        _fill(engine, "behind", "full", parked, priority=9)
        _fill(engine, "behind", None, int(2000 * seconds))
        conn.execute("vacuum analyze")
        _compare(engine, f"{parked} of a full policy in front, right after they were created", seconds)
        _fill(engine, "behind", None, parked // 40)
        _park(conn, engine)
        conn.execute("vacuum analyze")
        _compare(engine, f"{parked} of a full policy in front, when they are parked", seconds)


def _park(conn: Connection, engine: Engine) -> None:
    """Claims until all rows of the full policy are parked; a claim parks some of them."""
    conn.execute("set synchronous_commit = off")
    while conn.execute(READY).fetchone() != (0,):
        for _ in range(100):
            engine.claim("behind", "w", "w-1", lease_ttl_ms=86_400_000)
    conn.execute("set synchronous_commit = on")


def _compare(engine: Engine, when: str, seconds: float) -> None:
    """Alternates between both lanes, so that other load on the machine affects both."""
    taken: dict[str, list[float]] = {"alone": [], "behind": []}
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(taken["behind"]) < 2:  # a percentile needs two
        for lane, times in taken.items():
            began = time.perf_counter()
            lease = engine.claim(lane, "w", "w-1")
            times.append((time.perf_counter() - began) * 1000)
            if lease is None:
                sys.exit(f"{lane} ran dry")
            engine.complete(lease.handle)
            engine.create_execution(lane)
    alone, behind = (statistics.median(taken[lane]) for lane in ("alone", "behind"))
    p99 = {lane: statistics.quantiles(times, n=100)[98] for lane, times in taken.items()}
    print(
        f"claim of others, {when}: p50 {behind:.2f} ms (alone {alone:.2f},"
        f" ratio {behind / alone:.2f}), p99 {p99['behind']:.2f} ms (alone {p99['alone']:.2f})",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
