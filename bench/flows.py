"""Flows: a chain that passes its ends on, a race that is cancelled, a large graph that is submitted and cancelled."""

import argparse
import statistics
import sys
import time
from typing import Any

import psycopg

from bench.hotpath import SETTINGS
from pyff.engine import Engine
from pyff.migrate import migrate
from pyff.postgres import temporary

CHAIN = 10
FAN = 100
SIZES = (100, 1_000, 10_000)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/run flows", description=__doc__)
    parser.add_argument("--flows", type=int, default=200, help="flows of each kind (default 200)")
    args = parser.parse_args()
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        with psycopg.connect(server.dsn, autocommit=True) as conn, Engine(conn) as engine:
            _chains(engine, args.flows)
            _claims(engine, conn)
            _races(engine, args.flows)
            _growth(engine, conn)
    return 0


def _chains(engine: Engine, flows: int) -> None:
    nodes: Any = [{"key": str(n), "lane_id": "chain"} for n in range(CHAIN)]
    edges: Any = [{"from": str(n), "to": str(n + 1)} for n in range(CHAIN - 1)]
    taken = []
    for _ in range(flows):
        began = time.perf_counter()
        engine.submit_flow(nodes, edges=edges)
        for _ in range(CHAIN):
            lease = engine.claim("chain", "w", "w-1")
            if lease is None:
                sys.exit("a chain did not go on by itself")
            engine.complete(lease.handle)
        taken.append((time.perf_counter() - began) * 1000)
    print(
        f"chain of {CHAIN}, one worker: {1000 * flows / sum(taken):.0f} flows/s,"
        f" p50 {statistics.median(taken):.1f} ms, p99 {_p99(taken):.1f} ms"
    )


def _claims(engine: Engine, conn: psycopg.Connection[Any]) -> None:
    """A claim of a solo execution, alone and behind thousands that may not be claimed."""

    def one() -> float:
        taken = []
        for _ in range(100):
            engine.create_execution("claims")
            began = time.perf_counter()
            lease = engine.claim("claims", "w", "w-1")
            taken.append((time.perf_counter() - began) * 1000)
            if lease is None:
                sys.exit("a claim came back empty")
            engine.complete(lease.handle)
        return statistics.median(taken)

    alone = one()
    held = engine.create_flow(hold=True).flow_id
    engine.create_executions("claims", [b""] * 10_000, flow_id=held)
    behind_held = one()
    cancelled = engine.create_flow().flow_id
    engine.create_executions("claims", [b""] * 10_000, flow_id=cancelled)
    engine.cancel_flow_header(cancelled, grace_ms=3_600_000)
    conn.execute("vacuum analyze")
    behind_cancelled = one()
    print(
        f"claim, p50: {alone:.2f} ms alone, {behind_held:.2f} ms behind 10 000 of a held flow,"
        f" {behind_cancelled:.2f} ms behind 10 000 of a cancelled one in its grace"
    )


def _races(engine: Engine, flows: int) -> None:
    """The first of many wins; its completion cancels the others."""
    nodes: Any = [{"key": str(n), "lane_id": "race"} for n in range(FAN)] + [{"key": "end", "lane_id": "end"}]
    edges: Any = [{"from": str(n), "to": "end"} for n in range(FAN)]
    groups: Any = [{"to": "end", "policy": "any_of", "on_satisfied": "cancel_remaining"}]
    taken = []
    for _ in range(max(flows // 4, 10)):
        engine.submit_flow(nodes, edges=edges, groups=groups)
        lease = engine.claim("race", "w", "w-1")
        if lease is None:
            sys.exit("a race has no runner")
        began = time.perf_counter()
        engine.complete(lease.handle)
        taken.append((time.perf_counter() - began) * 1000)
        end = engine.claim("end", "w", "w-1")
        if end is None:
            sys.exit("a race was not decided")
        engine.complete(end.handle)
    print(
        f"any_of over {FAN}, cancel_remaining: the winning ff_complete takes p50 {statistics.median(taken):.1f} ms,"
        f" p99 {_p99(taken):.1f} ms"
    )


def _growth(engine: Engine, conn: psycopg.Connection[Any]) -> None:
    for size in SIZES:
        nodes: Any = [{"key": str(n), "lane_id": "big"} for n in range(size)]
        edges: Any = [{"from": str(n // 2), "to": str(n)} for n in range(1, size)]
        best = float("inf")
        for _ in range(3):
            began = time.perf_counter()
            made = engine.submit_flow(nodes, edges=edges)
            best = min(best, time.perf_counter() - began)
        conn.execute("vacuum analyze")
        began = time.perf_counter()
        first = engine.cancel_flow(made[0].flow_id)
        call = time.perf_counter() - began
        calls = 0
        while engine.drain_cancel_backlog(limit=1000, flow_id=made[0].flow_id).more:
            calls += 1
        whole = time.perf_counter() - began
        print(
            f"{size:6} nodes: submit {best:.3f} s ({best / size * 1e6:.0f} us per node); cancel, first call"
            f" {call:.3f} s for {first.cancelled_count}, all {whole:.3f} s ({whole / size * 1e6:.0f} us per node)"
        )


def _p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


if __name__ == "__main__":
    sys.exit(main())
