"""The demonstration: work submitted, done by two workers, and saved from a third that crashes; work that waits for an
approval, which another process delivers; and a flow."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

import psycopg

from pyff.engine import Engine
from pyff.errors import HmacAlreadySeeded
from pyff.types import JsonValue

LANE = "demo"
APPROVALS = "demo-approvals"
SHOPS = ("shop-a", "shop-b", "shop-c")
CRASH_LEASE_MS = 400
LEASE_MS = 5_000

# How the work looks to somebody with psql. %(namespace)s is this run.
LOOK = {
    "what happened": """\
select '{fp:' || e.partition_key || '}:' || e.execution_id as execution_id, i.execution_kind as kind,
       e.priority, e.public_state as state,
       e.total_attempt_count as attempts, a.worker_id as worker,
       convert_from(a.result, 'UTF8') as result, e.terminal_at_ms - e.created_at_ms as ms
  from ff_exec_core e
  join ff_exec_input i using (execution_id)
  left join ff_attempt a on a.execution_id = e.execution_id and a.attempt_index = e.current_attempt_index
 where e.namespace = %(namespace)s order by e.terminal_at_ms, e.execution_id""",
    "how the crashed one was saved": """\
select x.family, x.event_type as event, x.reason, x.lease_epoch as epoch, x.worker_id as worker
  from ff_event x
 where x.namespace = %(namespace)s
   and x.execution_id = (select r.execution_id from ff_event r
                          where r.namespace = x.namespace and r.event_type = 'reclaimed')
 order by x.event_id""",
    "how the approval was waited for": """\
select x.family, x.event_type as event, x.reason, x.effect, x.attempt_index as attempt, x.lease_epoch as epoch,
       coalesce(x.worker_id, x.source_identity) as who
  from ff_event x
 where x.namespace = %(namespace)s
   and x.execution_id = (select r.execution_id from ff_event r
                          where r.namespace = x.namespace and r.event_type = 'suspended')
 order by x.event_id""",
}


@dataclass(frozen=True)
class Story:
    """What a run did, and where to look at it."""

    namespace: str
    submitted: int
    duplicates: int
    completed: int
    reclaimed: int
    approved: bool
    seconds: float
    flow_id: UUID
    flow_state: str


def run(dsn: str, say: Callable[[str], None]) -> Story:
    """Plays the story on a migrated database. Nothing but the public functions is called."""
    with Engine(dsn) as engine:
        began = time.monotonic()
        namespace = f"demo-{engine.now_ms()}"
        with contextlib.suppress(HmacAlreadySeeded):
            engine.seed_waitpoint_hmac_secret("demo-1")
        approved = _wait_for_approval(engine, dsn, namespace, say)
        submitted, duplicates = _submit(engine, namespace)
        _crash(engine, namespace)
        done: list[str] = []
        workers = [
            threading.Thread(target=_work, args=(engine, namespace, name, submitted, done))
            for name in ("anna", "ben")
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        seconds = time.monotonic() - began
        flow_id = _flow(engine, namespace)
        flow = engine.describe_flow(flow_id)
        return Story(
            namespace,
            submitted,
            duplicates,
            len(done),
            done.count("reclaimed"),
            approved,
            seconds,
            flow_id,
            flow.public_flow_state if flow else "",
        )


def _wait_for_approval(engine: Engine, dsn: str, namespace: str, say: Callable[[str], None]) -> bool:
    """A refund waits for its approval without holding a lease; `pyff signal`, in a process of its own, delivers it."""
    engine.create_execution(APPROVALS, execution_kind="refund", payload=b"100 euros", namespace=namespace)
    lease = engine.claim(APPROVALS, "anna", "anna-1", lease_ttl_ms=LEASE_MS, namespace=namespace)
    if lease is None:
        return False
    (waits,) = engine.suspend(
        lease.handle,
        {"kind": "single", "waitpoint_key": "approval", "matcher": {"by_name": "approve"}},
        reason_code="waiting_for_approval",
        timeout_ms=60_000,
    )
    say(f"a refund waits for its approval; whoever has this token may give it: {waits.waitpoint_token}")
    done = subprocess.run(
        [
            *(
                sys.executable,
                "-P",
                "-m",
                "pyff",
                "signal",
                "--dsn",
                dsn,
                "--token",
                "-",
                "--source",
                "the boss",
            ),
            *("--payload", "fine with me", lease.execution_id, str(waits.waitpoint_id), "approve"),
        ],
        input=waits.waitpoint_token,
        capture_output=True,
        text=True,
        check=False,
    )
    say(f"another process ran pyff signal ... approve, and was told: {(done.stdout or done.stderr).strip()}")
    again = engine.claim(APPROVALS, "ben", "ben-1", lease_ttl_ms=LEASE_MS, namespace=namespace)
    if again is None or again.attempt_id != lease.attempt_id:
        return False
    signals = engine.observe_signals(again.handle)
    say(
        f"ben goes on with the same attempt under lease {again.lease_epoch}, and reads:"
        f" {[(s.signal_name, s.source_identity, (s.payload or b'').decode()) for s in signals]}"
    )
    engine.complete(again.handle, result=b"PAID", result_encoding="utf8")
    return True


def look(dsn: str, namespace: str) -> dict[str, list[tuple[str, ...]]]:
    """The tables of `LOOK`, header first, as text."""
    found: dict[str, list[tuple[str, ...]]] = {}
    with psycopg.connect(dsn) as conn:
        for title, query in LOOK.items():
            cursor = conn.execute(query, {"namespace": namespace})
            header = tuple(column.name for column in cursor.description or ())
            found[title] = [header, *(tuple("" if v is None else str(v) for v in row) for row in cursor)]
    return found


def _submit(engine: Engine, namespace: str) -> tuple[int, int]:
    orders = ["bread", "coffee", "newspaper", "flowers", "bread"]  # somebody ordered twice
    outcomes = [
        engine.create_execution(
            LANE,
            execution_kind="order",
            payload=order.encode(),
            idempotency_key=order,
            priority=5 if order == "coffee" else 1,
            namespace=namespace,
        ).outcome
        for order in orders
    ]
    return outcomes.count("created"), outcomes.count("duplicate")


def _crash(engine: Engine, namespace: str) -> None:
    """A worker that claims the most urgent work and is never heard of again."""
    engine.claim(LANE, "carl", "carl-1", lease_ttl_ms=CRASH_LEASE_MS, namespace=namespace)


def _work(engine: Engine, namespace: str, name: str, wanted: int, done: list[str]) -> None:
    deadline = time.monotonic() + 10
    while len(done) < wanted and time.monotonic() < deadline:
        lease = engine.claim(LANE, name, f"{name}-1", lease_ttl_ms=LEASE_MS, namespace=namespace)
        if lease is None:
            time.sleep(0.02)
            continue
        engine.renew(lease.handle)
        result = (lease.payload or b"").decode().upper()
        engine.complete(lease.handle, result=result.encode(), result_encoding="utf8")
        done.append(lease.handle_kind)


def _flow(engine: Engine, namespace: str) -> UUID:
    """Split, three shops of which two must answer and one fails, then pay: one call, and whoever claims."""
    lane = "demo-flow"
    nodes = [
        {"key": key, "lane_id": lane, "execution_kind": key}
        for key in ("split", "shop-a", "shop-b", "shop-c", "choose", "pay")
    ]
    edges = [
        *({"from": "split", "to": shop} for shop in SHOPS),
        *({"from": shop, "to": "choose"} for shop in SHOPS),
        {"from": "choose", "to": "pay"},
    ]
    groups: list[JsonValue] = [{"to": "choose", "policy": "quorum", "k": 2, "on_satisfied": "let_run"}]
    made = engine.submit_flow(nodes, edges=edges, groups=groups, namespace=namespace, flow_kind="order")
    while lease := engine.claim(lane, "dora", "dora-1", lease_ttl_ms=LEASE_MS, namespace=namespace):
        if lease.execution_kind == "shop-b":
            engine.fail(lease.handle, reason="sold out", classification="permanent")
        else:
            engine.complete(lease.handle, result=lease.execution_kind.encode())
    return made[0].flow_id
