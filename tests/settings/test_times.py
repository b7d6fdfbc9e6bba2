"""The engine stores no time after the end of the year 9999, which is the last that every driver can read.

Every argument that is a time, or a duration that is added to the current time, is listed here: either with the call
that stores it, or among those that have a smaller limit of their own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from psycopg.types.json import Jsonb

from tests.sql import claim, create, one, refused, rows, table, take, violations
from tests.suspensions.support import OPERATOR_ONLY, run, suspend

LAST = 253_402_300_799_999
NOW = 1_800_000_000_000
DAY = 86_400_000


class Case(NamedTuple):
    call: Callable[[Any, int], Any]
    kind: str = "invalid_input"
    latest: int = LAST


def duration(call: Callable[[Any, int], Any], kind: str = "invalid_input", scale: int = 1) -> Case:
    """Added to the current time."""
    return Case(call, kind, (LAST - NOW) // scale)


def policy(path: str, latest: int = LAST - NOW) -> Case:
    """One number of a policy."""

    def call(db: Any, value: int) -> None:
        document: Any = value
        for key in reversed(path.split(".")):
            document = {key: document}
        if "backoff" in document.get("retry_policy", {}):
            kind = "fixed" if path.endswith(".delay_ms") else "exponential"
            document["retry_policy"]["backoff"]["type"] = kind
        create(db, policy=document, idempotency_key="k")

    return Case(call, "invalid_policy", latest)


def fence(db: Any) -> dict[str, Any]:
    held = run(db)
    return {
        name: held[name]
        for name in ("execution_id", "attempt_index", "lease_id", "lease_epoch", "attempt_id")
    }


def batch(db: Any, **args: Any) -> Any:
    return rows(db, "ff_create_executions", lane_id="default", payloads=[b"a", b"b"], **args)


def submit(db: Any, **node: Any) -> Any:
    return rows(db, "ff_submit_flow", nodes=Jsonb([{"key": "a", "lane_id": "default", **node}]))


def held_flow(db: Any) -> Any:
    flow_id = one(db, "ff_create_flow")["flow_id"]
    create(db, flow_id=flow_id)
    return flow_id


def change_quota(db: Any, **args: Any) -> None:
    one(db, "ff_create_quota_policy", quota_policy_id="q")
    one(db, "ff_update_quota_policy", quota_policy_id="q", **args)


def ask(db: Any, hold_ms: int) -> None:
    one(db, "ff_create_quota_policy", quota_policy_id="q", max_concurrent=1)
    one(db, "ff_check_admission", quota_policy_id="q", execution_id=create(db), hold_ms=hold_ms)


def budget(db: Any, interval_ms: int) -> None:
    one(
        db,
        "ff_create_budget",
        budget_id="b",
        dimensions=["d"],
        hard_limits=[1],
        soft_limits=[0],
        reset_interval_ms=interval_ms,
    )


def schedule(db: Any, **args: Any) -> None:
    one(db, "ff_create_schedule", schedule_id="s", lane_id="default", interval_ms=1000, **args)


def rotate(db: Any, grace_ms: int) -> None:
    one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="first")
    one(db, "ff_rotate_waitpoint_hmac_secret", new_kid="second", grace_ms=grace_ms)


CASES = {
    "ff_create_execution.p_delay_until_ms": Case(lambda db, v: create(db, delay_until_ms=v)),
    "ff_create_execution.p_delay_ms": duration(lambda db, v: create(db, delay_ms=v)),
    "ff_create_execution.p_deadline_at_ms": Case(lambda db, v: create(db, deadline_at_ms=v)),
    "ff_create_executions.p_delay_until_ms": Case(lambda db, v: batch(db, delay_until_ms=v)),
    "ff_create_executions.p_delay_ms": duration(lambda db, v: batch(db, delay_ms=v)),
    "ff_create_executions.p_deadline_at_ms": Case(lambda db, v: batch(db, deadline_at_ms=v)),
    "node.delay_until_ms": Case(lambda db, v: submit(db, delay_until_ms=v)),
    "node.delay_ms": duration(lambda db, v: submit(db, delay_ms=v)),
    "node.deadline_at_ms": Case(lambda db, v: submit(db, deadline_at_ms=v)),
    "node.policy": duration(lambda db, v: submit(db, policy={"retention_ms": v}), "invalid_policy"),
    "schedule.policy": duration(lambda db, v: schedule(db, policy={"retention_ms": v}), "invalid_policy"),
    "batch.policy": duration(lambda db, v: batch(db, policy={"retention_ms": v}), "invalid_policy"),
    "policy.delay_until_ms": policy("delay_until_ms", LAST),
    "policy.dedup_window_ms": policy("dedup_window_ms"),
    "policy.retention_ms": policy("retention_ms"),
    "policy.attempt_timeout_ms": policy("timeout_policy.attempt_timeout_ms"),
    "policy.execution_deadline_ms": policy("timeout_policy.execution_deadline_ms"),
    "policy.delay_ms": policy("retry_policy.backoff.delay_ms"),
    "policy.initial_delay_ms": policy("retry_policy.backoff.initial_delay_ms"),
    "policy.max_delay_ms": policy("retry_policy.backoff.max_delay_ms"),
    "ff_delay.p_delay_until_ms": Case(
        lambda db, v: one(db, "ff_delay", handle=run(db)["handle"], delay_until_ms=v)
    ),
    "ff_delay.p_delay_ms": duration(lambda db, v: one(db, "ff_delay", handle=run(db)["handle"], delay_ms=v)),
    "ff_delay_execution.p_delay_until_ms": Case(
        lambda db, v: one(db, "ff_delay_execution", delay_until_ms=v, **fence(db))
    ),
    "ff_delay_execution.p_delay_ms": duration(
        lambda db, v: one(db, "ff_delay_execution", delay_ms=v, **fence(db))
    ),
    "ff_suspend.p_timeout_at_ms": Case(
        lambda db, v: suspend(db, run(db)["handle"], OPERATOR_ONLY, timeout_at_ms=v), "invalid_timeout"
    ),
    "ff_suspend_execution.p_timeout_at_ms": Case(
        lambda db, v: rows(
            db, "ff_suspend_execution", condition=Jsonb(OPERATOR_ONLY), timeout_at_ms=v, **fence(db)
        ),
        "invalid_timeout",
    ),
    "ff_block_execution_for_admission.p_not_before_ms": Case(
        lambda db, v: one(
            db,
            "ff_block_execution_for_admission",
            execution_id=create(db),
            reason="paused_by_operator",
            not_before_ms=v,
        )
    ),
    "ff_check_admission.p_hold_ms": duration(ask),
    "ff_create_quota_policy.p_window_seconds": duration(
        lambda db, v: one(db, "ff_create_quota_policy", quota_policy_id="q", window_seconds=v),
        "invalid_quota_spec",
        1000,
    ),
    "ff_create_quota_policy.p_jitter_ms": duration(
        lambda db, v: one(db, "ff_create_quota_policy", quota_policy_id="q", jitter_ms=v),
        "invalid_quota_spec",
    ),
    "ff_update_quota_policy.p_window_seconds": duration(
        lambda db, v: change_quota(db, window_seconds=v), "invalid_quota_spec", 1000
    ),
    "ff_update_quota_policy.p_jitter_ms": duration(
        lambda db, v: change_quota(db, jitter_ms=v), "invalid_quota_spec"
    ),
    "ff_create_budget.p_reset_interval_ms": duration(budget),
    "ff_set_event_family.p_retention_ms": duration(
        lambda db, v: one(db, "ff_set_event_family", family="lease", retention_ms=v)
    ),
    "ff_cancel_flow_header.p_grace_ms": duration(
        lambda db, v: one(db, "ff_cancel_flow_header", flow_id=held_flow(db), grace_ms=v)
    ),
    "ff_rotate_waitpoint_hmac_secret.p_grace_ms": duration(rotate, "invalid_grace_ms"),
    "ff_trim_retention.p_retention_ms": duration(lambda db, v: one(db, "ff_trim_retention", retention_ms=v)),
    "ff_list_expired_leases.p_grace_ms": duration(
        lambda db, v: rows(db, "ff_list_expired_leases", grace_ms=v)
    ),
    "setting.retention_ms": duration(
        lambda db, v: one(db, "ff_set_setting", name="retention_ms", value=str(v))
    ),
    "setting.retention_failed_ms": duration(
        lambda db, v: one(db, "ff_set_setting", name="retention_failed_ms", value=str(v))
    ),
    "ff_create_schedule.p_start_at_ms": Case(lambda db, v: schedule(db, start_at_ms=v)),
    "ff_create_schedule.p_end_at_ms": Case(lambda db, v: schedule(db, end_at_ms=v)),
    "ff_preview_schedule.p_start_at_ms": Case(
        lambda db, v: rows(db, "ff_preview_schedule", interval_ms=1000, start_at_ms=v)
    ),
    "ff_preview_schedule.p_end_at_ms": Case(
        lambda db, v: rows(db, "ff_preview_schedule", interval_ms=1000, end_at_ms=v)
    ),
}

# At most ten years, by their own limit.
LIMITED = {
    "p_lease_ttl_ms",
    "p_grant_ttl_ms",
    "p_liveness_ttl_ms",
    "p_ttl_ms",
    "p_expires_in_ms",
    "p_timeout_ms",
    "p_dedup_ttl_ms",
    "p_resume_delay_ms",
    "p_retry_after_ms",
    "p_interval_ms",
    "p_block_ms",
    "p_max_ms",
    "ff_create_schedule.p_grace_ms",
}


def test_every_argument_that_is_a_time_is_listed(db):
    found = table(
        db,
        """select p.proname as function, a.name
             from pg_proc p
            cross join unnest(p.proargnames, coalesce(p.proargmodes, array_fill('i'::"char", array[p.pronargs])))
                       a(name, mode)
            where p.proname like 'ff\\_%%' and p.proname not like 'ff\\_\\_%%'
              and a.mode = 'i' and a.name ~ '_(ms|seconds)$'""",
    )
    arguments = {(r["function"], r["name"]) for r in found}
    assert len(arguments) > 50
    unlisted = {
        f"{function}.{name}"
        for function, name in arguments
        if name not in LIMITED and not {f"{function}.{name}"} & (LIMITED | CASES.keys())
    }
    assert unlisted == set()


def read_views(db):
    for view in table(db, "select viewname from pg_views where viewname like 'ff\\_v\\_%%'"):
        rows_of = table(db, f"select * from {view['viewname']}")
        assert isinstance(rows_of, list)


@pytest.mark.parametrize("name", CASES)
def test_the_end_of_the_year_9999_is_the_last_time(db, clock, name):
    clock.set(NOW)
    db.execute("set timezone = 'UTC'")
    case = CASES[name]
    for value in (case.latest + 1, 2**53, 2**63 - 1):
        with refused(case.kind), db.transaction():
            case.call(db, value)
    case.call(db, case.latest)
    read_views(db)
    assert violations(db) == []


def test_an_attempt_timeout_that_was_accepted_ends_by_the_last_time(db, clock):
    clock.set(NOW)
    for _ in range(2):
        create(db, policy={"timeout_policy": {"attempt_timeout_ms": LAST - NOW}})
    clock.advance(DAY)
    assert take(db)["attempt_timeout_at_ms"] == LAST
    many = rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w-1", limit=5)
    assert [r["attempt_timeout_at_ms"] for r in many] == [LAST]


def test_a_backoff_that_was_accepted_ends_by_the_last_time(db, clock):
    clock.set(NOW)
    create(db, policy={"retry_policy": {"backoff": {"type": "fixed", "delay_ms": LAST - NOW}}})
    clock.advance(DAY)
    assert one(db, "ff_fail", handle=take(db)["handle"])["delay_until_ms"] == LAST


def test_a_replayed_execution_has_its_deadline_by_the_last_time(db, clock):
    clock.set(NOW)
    eid = create(db, policy={"timeout_policy": {"execution_deadline_ms": LAST - NOW}})
    one(db, "ff_cancel", handle=take(db)["handle"], reason="x")
    clock.advance(DAY)
    one(db, "ff_replay_execution", execution_id=eid)
    assert one(db, "ff_describe_execution", execution_id=eid)["deadline_at_ms"] == LAST


def test_a_budget_is_reset_by_the_last_time(db, clock):
    clock.set(NOW)
    budget(db, LAST - NOW)
    clock.advance(DAY)
    assert one(db, "ff_reset_budget", budget_id="b")["next_reset_at_ms"] == LAST
    clock.set(LAST)
    assert one(db, "ff_sweep_budget_resets")["processed"] == 1
    assert rows(db, "ff_get_budget_status", budget_id="b")[0]["next_reset_at_ms"] == LAST


def test_work_parked_by_the_longest_window_waits_until_the_last_time(db, clock):
    clock.set(NOW)
    longest = {"window_seconds": (LAST - NOW) // 1000, "jitter_ms": LAST - NOW}
    one(db, "ff_create_quota_policy", quota_policy_id="q", max_requests_per_window=1, **longest)
    for _ in range(2):
        create(db, policy={"quota_policy_id": "q"})
    clock.advance(DAY)
    take(db)
    assert claim(db) is None
    parked = table(db, "select not_before from ff_v_execution where public_state = 'rate_limited'")
    assert [r["not_before"].year for r in parked] == [9999]


def test_a_schedule_has_no_tick_after_the_last_time(db, clock):
    clock.set(NOW)
    ticks = rows(db, "ff_preview_schedule", interval_ms=1000, start_at_ms=LAST - 1500)
    assert [r["fire_at_ms"] for r in ticks] == [LAST - 1500, LAST - 500]
    ticks = rows(db, "ff_preview_schedule", cron="* * * * *", start_at_ms=LAST - 60_000)
    assert [r["fire_at_ms"] for r in ticks] == [LAST - 59_999]
