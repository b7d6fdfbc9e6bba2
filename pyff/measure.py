"""Measures cycles of create, claim and complete by several clients on one database."""

import dataclasses
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.errors import InsufficientPrivilege

from pyff.engine import Engine

LANE = "pyff.bench"
TICK_S = 0.1
LEASE_MS = 60_000


@dataclass(frozen=True)
class Call:
    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Report:
    cycles: int
    seconds: float
    cycles_per_s: float
    clients: int
    calls: dict[str, Call]

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def run(dsn: str, *, seconds: float, clients: int, size: int, tick: Callable[[int], None]) -> Report:
    """Calls `tick` with the elapsed milliseconds. Every client has its own namespace, so that it claims its own
    executions."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        name = f"bench-{Engine(conn).now_ms()}"
    stop = threading.Event()
    spent: list[dict[str, list[float]]] = [
        {"create": [], "claim": [], "complete": []} for _ in range(clients)
    ]
    failed: list[BaseException] = []
    threads = [
        threading.Thread(
            target=_Client(dsn, f"{name}-{n}", b"x" * size, stop, times, failed).run, daemon=True
        )
        for n, times in enumerate(spent)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    tick(0)
    try:
        while not failed and (passed := time.monotonic() - began) < seconds:
            tick(int(passed * 1000))
            time.sleep(min(TICK_S, max(0.0, seconds - passed)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        _clean(dsn, [f"{name}-{n}" for n in range(clients)])
    if failed:
        raise failed[0]
    cycles = sum(len(times["complete"]) for times in spent)
    calls = {
        call: _call([ms for times in spent for ms in times[call]]) for call in ("create", "claim", "complete")
    }
    return Report(cycles, took, cycles / took, clients, calls)


@dataclass(frozen=True)
class _Client:
    dsn: str
    namespace: str
    payload: bytes
    stop: threading.Event
    times: dict[str, list[float]]
    failed: list[BaseException]

    def run(self) -> None:
        try:
            self._cycle()
        except Exception as error:
            self.failed.append(error)

    def _cycle(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True, fallback_application_name="pyff bench") as conn:
            engine = Engine(conn, check_schema=False)
            while not (self.stop.is_set() and self.times["complete"]):  # at least one cycle
                start = time.perf_counter()
                engine.create_execution(LANE, payload=self.payload, namespace=self.namespace)
                created = time.perf_counter()
                lease = engine.claim(
                    LANE, "bench", self.namespace, namespace=self.namespace, lease_ttl_ms=LEASE_MS
                )
                claimed = time.perf_counter()
                if lease is None:
                    continue
                engine.complete(lease.handle)
                done = time.perf_counter()
                self.times["create"].append((created - start) * 1000)
                self.times["claim"].append((claimed - created) * 1000)
                self.times["complete"].append((done - claimed) * 1000)


def _clean(dsn: str, namespaces: list[str]) -> None:
    with (
        suppress(InsufficientPrivilege, psycopg.OperationalError),
        psycopg.connect(dsn, autocommit=True) as conn,
    ):
        engine = Engine(conn, check_schema=False)
        for namespace in namespaces:
            while engine.trim_retention(retention_ms=0, lane_id=LANE, namespace=namespace, limit=10_000).more:
                pass


def _call(spent: list[float]) -> Call:
    if len(spent) < 2:
        return Call(*[spent[0] if spent else 0.0] * 3)
    cuts = statistics.quantiles(spent, n=100, method="inclusive")
    return Call(cuts[49], cuts[94], cuts[98])
