"""Helpers for the tests of admission."""

from typing import Any

import psycopg

from tests.sql import Row, create, execution, one, rows

HOUR = 3_600_000


def policy(conn: psycopg.Connection[Any], name: str = "q", **limits: int) -> str:
    """A quota policy: at_once, per_window, window (seconds), jitter."""
    one(
        conn,
        "ff_create_quota_policy",
        quota_policy_id=name,
        max_concurrent=limits.get("at_once", 0),
        max_requests_per_window=limits.get("per_window", 0),
        window_seconds=limits.get("window", 60 if "per_window" in limits else 0),
        jitter_ms=limits.get("jitter", 0),
    )
    return name


def under(conn: psycopg.Connection[Any], name: str = "q", **args: Any) -> str:
    """A new execution under a quota policy."""
    more = args.pop("policy", {})
    return create(conn, policy={"quota_policy_id": name, **more}, **args)


def budget(
    conn: psycopg.Connection[Any], name: str, used: int = 0, hard: int = 10, mode: str = "strict"
) -> str:
    """A budget, written straight into its tables."""
    conn.execute(
        """insert into ff_budget (budget_id, reset_interval_ms, created_at_ms, updated_at_ms, release_on_terminal,
                                  enforcement_mode, on_hard_limit, on_soft_limit, scope_type, scope_id)
           values (%s, 0, 0, 0, false, %s, 'fail', 'warn', '', '')""",
        [name, mode],
    )
    conn.execute(
        "insert into ff_budget_usage (budget_id, dimension, hard_limit, current_value) values (%s, 'd', %s, %s)",
        [name, hard, used],
    )
    return name


def use(conn: psycopg.Connection[Any], name: str, used: int) -> None:
    conn.execute("update ff_budget_usage set current_value = %s where budget_id = %s", [used, name])


def ask(conn: psycopg.Connection[Any], eid: str, name: str = "q", **args: Any) -> Row:
    return one(conn, "ff_check_admission", quota_policy_id=name, execution_id=eid, **args)


def limits(conn: psycopg.Connection[Any], name: str = "q") -> Row:
    return one(conn, "ff_read_quota_policy_limits", quota_policy_id=name)


def state(conn: psycopg.Connection[Any], eid: str) -> str:
    return str(execution(conn, eid)["eligibility_state"])


def parked(conn: psycopg.Connection[Any]) -> int:
    found = conn.execute(
        "select count(*) from ff_exec_core where eligibility_state in ('blocked_by_quota', 'blocked_by_budget')"
    ).fetchone()
    assert found
    return int(found[0])


def many(conn: psycopg.Connection[Any], count: int, name: str | None = None, **args: Any) -> list[str]:
    """Many new executions at once, in the order of claims."""
    given = {"quota_policy_id": name} if name else {}
    found = rows(
        conn,
        "ff_create_executions",
        **{"lane_id": "default", "payloads": [b""] * count, "policy": given, **args},
    )
    return sorted((row["execution_id"] for row in found), key=lambda eid: eid.split(":")[-1])


def sweep(conn: psycopg.Connection[Any], **args: Any) -> int:
    row = one(conn, "ff_sweep_admissions", **args)
    assert row["errors"] == 0
    return int(row["processed"])
