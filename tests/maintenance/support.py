"""One thing that time will make due for each sweep, and rows that cannot be processed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from psycopg import sql

from tests.sql import Row, create, execution, one, table, take
from tests.suspensions.support import seed, suspend

IN_MS = 1000
HOUR = 3_600_000
# Locked by another transaction.
FLOW = "select from ff_flow_core where flow_id = %s for update"
EXECUTION = "select from ff_execution where execution_id::text = %s for update"


@dataclass(frozen=True)
class Due:
    """What one sweep will find: when, where its row is, and whether it has been moved."""

    due_ms: int
    relation: str
    column: str
    value: str
    key: str
    moved: Callable[[], bool]


def uuid_of(execution_id: str) -> str:
    return execution_id.rsplit(":", maxsplit=1)[-1]


def _of_execution(db, eid: str, due_ms: int, changed: Callable[[Row], bool]) -> Due:
    return Due(
        due_ms,
        "ff_execution",
        "execution_id",
        uuid_of(eid),
        uuid_of(eid),
        lambda: changed(execution(db, eid)),
    )


def lease(db, now: int, lane: str) -> Due:
    create(db, lane)
    held = take(db, lane, lease_ttl_ms=IN_MS)
    return _of_execution(
        db,
        held["execution_id"],
        held["lease_expires_at_ms"],
        lambda e: e["ownership_state"] == "lease_expired_reclaimable",
    )


def attempt(db, now: int, lane: str) -> Due:
    create(db, lane, policy={"timeout_policy": {"attempt_timeout_ms": IN_MS}})
    held = take(db, lane, lease_ttl_ms=60_000)
    return _of_execution(
        db,
        held["execution_id"],
        held["attempt_timeout_at_ms"],
        lambda e: (e["public_state"], e["failure_reason"]) == ("expired", "attempt_timeout"),
    )


def deadline(db, now: int, lane: str) -> Due:
    eid = create(db, lane, deadline_at_ms=now + IN_MS)
    return _of_execution(
        db,
        eid,
        now + IN_MS,
        lambda e: (e["public_state"], e["failure_reason"]) == ("expired", "execution_deadline"),
    )


def delay(db, now: int, lane: str) -> Due:
    eid = create(db, lane, delay_ms=IN_MS)
    return _of_execution(db, eid, now + IN_MS, lambda e: e["public_state"] == "waiting")


def suspension(db, now: int, lane: str) -> Due:
    seed(db)
    create(db, lane)
    held = take(db, lane, lease_ttl_ms=60_000)
    suspend(db, held["handle"], timeout_at_ms=now + IN_MS, timeout_behavior="fail")
    return _of_execution(
        db, held["execution_id"], now + IN_MS, lambda e: e["failure_reason"] == "suspension_timeout:fail"
    )


def waitpoint(db, now: int, lane: str) -> Due:
    seed(db)
    create(db, lane)
    held = take(db, lane, lease_ttl_ms=60_000)
    made = one(db, "ff_create_waitpoint", handle=held["handle"], expires_in_ms=IN_MS)
    wid = str(made["waitpoint_id"])
    query = "select state from ff_waitpoint where waitpoint_id = %s"
    return Due(
        made["expires_at_ms"],
        "ff_waitpoint",
        "waitpoint_id",
        wid,
        wid,
        lambda: table(db, query, wid) == [{"state": "expired"}],
    )


def grant(db, now: int, lane: str) -> Due:
    eid = create(db, lane)
    made = one(
        db,
        "ff_issue_claim_grant",
        execution_id=eid,
        worker_id="w",
        worker_instance_id="w-1",
        grant_ttl_ms=IN_MS,
    )
    query = "select from ff_claim_grant where execution_id = %s"
    return Due(
        made["expires_at_ms"],
        "ff_claim_grant",
        "execution_id",
        uuid_of(eid),
        uuid_of(eid),
        lambda: not table(db, query, uuid_of(eid)) and not execution(db, eid)["granted"],
    )


def worker(db, now: int, lane: str) -> Due:
    (n,) = table(db, "select count(*) as n from ff_worker_registry")
    name = f"w-{n['n']}-{now}"
    made = one(
        db,
        "ff_register_worker",
        worker_id="w",
        worker_instance_id=name,
        lanes=["default"],
        liveness_ttl_ms=IN_MS,
    )
    query = "select from ff_worker_registry where worker_instance_id = %s"
    return Due(
        made["next_expiry_ms"],
        "ff_worker_registry",
        "worker_instance_id",
        name,
        f'["default", "{name}"]',
        lambda: not table(db, query, name),
    )


def key(db, now: int, lane: str) -> Due:
    (n,) = table(db, "select count(*) as n from ff_idempotency")
    name = f"key {n['n']} {now}"
    create(db, lane, idempotency_key=name, policy={"dedup_window_ms": IN_MS})
    query = "select from ff_idempotency where idempotency_key = %s"
    return Due(
        now + IN_MS,
        "ff_idempotency",
        "idempotency_key",
        name,
        f'i["default", "{name}"]',
        lambda: not table(db, query, name),
    )


def ended(db, now: int, lane: str) -> Due:
    create(db, lane, policy={"retention_ms": IN_MS})
    done = take(db, lane)
    one(db, "ff_complete", handle=done["handle"])
    eid = uuid_of(done["execution_id"])
    return Due(
        now + IN_MS,
        "ff_execution",
        "execution_id",
        eid,
        f"x{eid}",
        lambda: not table(db, "select from ff_exec_core where execution_id = %s", eid),
    )


def frame(db, now: int, lane: str) -> Due:
    create(db, lane)
    held = take(db, lane, lease_ttl_ms=60_000)
    one(db, "ff_append_frame", handle=held["handle"], payload=b"x", mode="best_effort_live")
    eid = uuid_of(held["execution_id"])
    (made,) = table(db, "select * from ff_stream_frame where execution_id = %s", eid)
    return Due(
        made["expires_at_ms"],
        "ff_stream_frame",
        "execution_id",
        eid,
        f'["{eid}", 0, {made["ts_ms"]}, {made["seq"]}]',
        lambda: not table(db, "select from ff_stream_frame where execution_id = %s", eid),
    )


def park(db, now: int, lane: str) -> Due:
    one(db, "ff_create_quota_policy", quota_policy_id="q")
    eid = create(db, lane, policy={"quota_policy_id": "q"})
    one(
        db,
        "ff_block_execution_for_admission",
        execution_id=eid,
        reason="waiting_for_quota",
        not_before_ms=now + IN_MS,
    )
    return _of_execution(db, eid, now + IN_MS, lambda e: e["eligibility_state"] == "eligible_now")


def _budget(db, name: str, **args: Any) -> None:
    one(
        db,
        "ff_create_budget",
        budget_id=name,
        dimensions=["d"],
        hard_limits=[1],
        soft_limits=[0],
        **args,
    )


def reset(db, now: int, lane: str) -> Due:
    (n,) = table(db, "select count(*) as n from ff_budget")
    name = f"reset {n['n']}"
    _budget(db, name, reset_interval_ms=HOUR)
    # Its hour is nearly over: the next one is far away.
    db.execute("update ff_budget set next_reset_at_ms = %s where budget_id = %s", [now + IN_MS, name])
    query = "select reset_count from ff_budget where budget_id = %s"
    return Due(
        now + IN_MS,
        "ff_budget",
        "budget_id",
        name,
        f'["{name}"]',
        lambda: table(db, query, name) == [{"reset_count": 1}],
    )


def breach(db, now: int, lane: str) -> Due:
    (n,) = table(db, "select count(*) as n from ff_budget")
    name = f"breach {n['n']}"
    _budget(db, name, on_hard_limit="cancel_all")
    eid = create(db, lane, policy={"budget_ids": [name]})
    one(db, "ff_report_usage_admin", budget_id=name, deltas={"d": 2})
    due = _of_execution(db, eid, now, lambda e: e["cancellation_reason"] == "budget_exceeded")
    return replace(due, key=f'["{name}", "{due.value}"]')


def spend(db, now: int, lane: str) -> Due:
    (n,) = table(db, "select count(*) as n from ff_budget")
    name = f"spend {n['n']:03}"
    _budget(db, name, release_on_terminal=True)
    eid = create(db, lane)
    one(db, "ff_record_spend", budget_id=name, execution_id=eid, deltas={"d": 1}, idempotency_key="k")
    one(db, "ff_complete", handle=take(db, lane)["handle"])
    query = "select from ff_budget_usage_by_exec where execution_id = %s"
    return Due(
        now,
        "ff_budget_usage_by_exec",
        "execution_id",
        uuid_of(eid),
        f'["{name}", "{uuid_of(eid)}"]',
        lambda: not table(db, query, uuid_of(eid)),
    )


SWEEPS: dict[str, Callable[[Any, int, str], Due]] = {
    "sweep_expired_leases": lease,
    "sweep_attempt_timeouts": attempt,
    "sweep_deadlines": deadline,
    "sweep_delayed": delay,
    "sweep_suspensions": suspension,
    "sweep_waitpoints": waitpoint,
    "sweep_claim_grants": grant,
    "sweep_workers": worker,
    "sweep_expired": key,
    "trim_retention": ended,
    "trim_streams": frame,
    "sweep_admissions": park,
    "sweep_budget_resets": reset,
    "sweep_budget_breaches": breach,
    "sweep_terminal_spend": spend,
}
AT_ONCE = {"sweep_budget_breaches", "sweep_terminal_spend"}  # there is nothing to wait for


def make(db, clock, sweep: str, count: int) -> list[Due]:
    """Several, each due ten milliseconds after the one before, on a lane named after the sweep."""
    made = []
    for _ in range(count):
        made.append(SWEEPS[sweep](db, clock.now(), sweep))
        clock.advance(10)
    return made


def poison(db, due: Due) -> None:
    """From now on every change of this row fails."""
    db.execute(
        """
        create or replace function test_poison() returns trigger language plpgsql as $$
        begin
            if to_jsonb(old) ->> tg_argv[0] = tg_argv[1] then
                raise exception 'poison %', tg_argv[1];
            end if;
            return case tg_op when 'DELETE' then old else new end;
        end
        $$
        """
    )
    db.execute(
        sql.SQL(
            "create trigger {} before update or delete on {} for each row execute function test_poison({}, {})"
        ).format(
            sql.Identifier(f"poison {due.value}"),
            sql.Identifier(due.relation),
            sql.Literal(due.column),
            sql.Literal(due.value),
        )
    )


def repair(db, due: Due) -> None:
    db.execute(
        sql.SQL("drop trigger {} on {}").format(
            sql.Identifier(f"poison {due.value}"), sql.Identifier(due.relation)
        )
    )


def spoil(db, statements: str) -> None:
    """From now on each change of an execution runs these statements of PL/pgSQL first."""
    db.execute(
        f"create function test_spoil() returns trigger language plpgsql as "
        f"$$ begin {statements} return new; end $$"
    )
    db.execute(
        "create trigger spoil before update on ff_execution for each row execute function test_spoil()"
    )


def unspoil(db) -> None:
    db.execute("drop trigger spoil on ff_execution")


def errors(db, sweep: str) -> dict[str, Row]:
    found = table(db, "select * from ff_reconciler_error where name = %s", sweep)
    return {row["row_key"]: row for row in found}


def sweep(db, name: str, **args: Any) -> tuple[int, int, bool]:
    answer = one(db, f"ff_{name}", **args)
    return answer["processed"], answer["errors"], answer["more"]
