"""Flows: a chain, a race that is cancelled, a large graph that is submitted and cancelled."""

import argparse
import statistics
import sys
import time
from typing import Any

import psycopg

from bench.server import SETTINGS, head, p99
from pyff.engine import Engine
from pyff.migrate import migrate
from pyff.postgres import temporary

CHAIN = 10
FAN = 100
SIZES = (100, 1_000, 10_000)
LOCKED = 1_000
FAN_OUT = 4_000
RUNNERS = 400
GROUPS = 200


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench/run flows", description=__doc__)
    parser.add_argument("--flows", type=int, default=200, help="flows of each kind (default 200)")
    parser.add_argument(
        "--only",
        action="append",
        metavar="PART",
        help="chains, claims, races, growth, locked, fan_out or shared (repeatable)",
    )
    args = parser.parse_args(argv)
    with temporary(**SETTINGS) as server:
        migrate(server.dsn)
        head(server)
        with psycopg.connect(server.dsn, autocommit=True) as conn, Engine(conn) as engine:
            parts = {
                "chains": lambda: _chains(engine, args.flows),
                "claims": lambda: _claims(engine, conn),
                "races": lambda: _races(engine, args.flows),
                "growth": lambda: _growth(engine, conn),
                "locked": lambda: _locked_child(engine, server.dsn),
                "fan_out": lambda: _fan_out(engine),
                "shared": lambda: _shared_races(engine),
            }
            for name, part in parts.items():
                if name in (args.only or parts):
                    part()
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
                sys.exit("a chain did not continue")
            engine.complete(lease.handle)
        taken.append((time.perf_counter() - began) * 1000)
    print(
        f"chain of {CHAIN}, one worker: {1000 * flows / sum(taken):.0f} flows/s,"
        f" p50 {statistics.median(taken):.1f} ms, p99 {p99(taken):.1f} ms"
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
        f" p99 {p99(taken):.1f} ms"
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


def _locked_child(engine: Engine, dsn: str) -> None:
    """Upstreams complete one after the other while another session holds their common child."""
    nodes: Any = [{"key": str(n), "lane_id": "locked"} for n in range(LOCKED)] + [
        {"key": "child", "lane_id": "end"}
    ]
    edges: Any = [{"from": str(n), "to": "child"} for n in range(LOCKED)]
    made = {row.node_key: row.execution_id for row in engine.submit_flow(nodes, edges=edges)}
    leases = [
        lease
        for _ in range(LOCKED // 100)
        for lease in engine.claim_many("locked", "w", "w-1", limit=100, lease_ttl_ms=600_000)
    ]
    taken = []
    with psycopg.connect(dsn) as other:
        other.execute("select ff_change_priority(%s, 1)", [made["child"]])
        for lease in leases:
            began = time.perf_counter()
            engine.complete(lease.handle)
            taken.append((time.perf_counter() - began) * 1000)
        other.rollback()
    while engine.claim("end", "w", "w-1") is None:
        time.sleep(0.1)
    first, last = statistics.median(taken[:20]), statistics.median(taken[-20:])
    print(
        f"{LOCKED} upstreams of a locked child: ff_complete takes {first:.2f} ms at first (median of 20),"
        f" {last:.2f} ms at last, ratio {last / first:.1f} (at most 3), slowest {max(taken):.1f} ms"
    )


def _fan_out(engine: Engine) -> None:
    """One call cancels a flow in which one member feeds all others."""
    nodes: Any = [{"key": str(n), "lane_id": "fan"} for n in range(FAN_OUT + 1)]
    edges: Any = [{"from": "0", "to": str(n)} for n in range(1, FAN_OUT + 1)]
    taken = []
    for _ in range(3):
        flow_id = engine.submit_flow(nodes, edges=edges)[0].flow_id
        began = time.perf_counter()
        ended = engine.cancel_flow(flow_id, max_members=100_000)
        taken.append(time.perf_counter() - began)
        if ended.cancelled_count != FAN_OUT + 1:
            sys.exit(f"{ended.cancelled_count} members were cancelled")
    print(f"fan-out of {FAN_OUT}: ff_cancel_flow takes {_seconds(taken)} (at most 1 s)")


def _shared_races(engine: Engine) -> None:
    """One completion decides many any_of groups, all fed by the same upstreams, and cancels these."""
    nodes: Any = [{"key": f"u{n}", "lane_id": "runner"} for n in range(RUNNERS)]
    nodes += [{"key": f"g{n}", "lane_id": "won"} for n in range(GROUPS)]
    edges: Any = [{"from": f"u{n}", "to": f"g{m}"} for n in range(RUNNERS) for m in range(GROUPS)]
    groups: Any = [{"to": f"g{n}", "policy": "any_of"} for n in range(GROUPS)]
    taken, drained = [], []
    for _ in range(3):
        flow_id = engine.submit_flow(nodes, edges=edges, groups=groups)[0].flow_id
        lease = engine.claim("runner", "w", "w-1")
        if lease is None:
            sys.exit("a race has no runner")
        began = time.perf_counter()
        engine.complete(lease.handle)
        taken.append(time.perf_counter() - began)
        found = engine.describe_flow(flow_id)
        if found is None or (found.members_cancelled, found.members_waiting) != (RUNNERS - 1, GROUPS):
            sys.exit("the races were not decided")
        began = time.perf_counter()
        while engine.dispatch_completions().more:
            pass
        drained.append(time.perf_counter() - began)
        engine.cancel_flow(flow_id)
    print(
        f"{GROUPS} any_of groups over {RUNNERS} shared upstreams: the winning ff_complete takes {_seconds(taken)}"
        f" (at most 1 s), dispatch of the cancelled ones {_seconds(drained)}"
    )


def _seconds(taken: list[float]) -> str:
    return f"{min(taken):.3f} to {max(taken):.3f} s"


if __name__ == "__main__":
    sys.exit(main())
