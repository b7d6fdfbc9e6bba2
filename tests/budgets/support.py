"""Helpers for the tests of budgets."""

from typing import Any

from tests.sql import Row, one, rows, table


def budget(db: Any, budget_id: str = "b", **options: Any) -> Row:
    """A strict budget of 100 tokens, soft from 50 on, unless said otherwise."""
    limits = {"dimensions": ["tokens"], "hard_limits": [100], "soft_limits": [50]}
    return one(db, "ff_create_budget", budget_id=budget_id, **{**limits, **options})


def report(db: Any, amounts: Any, budget_id: str = "b", **options: Any) -> Row:
    deltas = {"tokens": amounts} if isinstance(amounts, int) else amounts
    return one(db, "ff_report_usage_admin", budget_id=budget_id, deltas=deltas, **options)


def spend(db: Any, execution_id: str, amounts: Any, key: str, budget_id: str = "b") -> Row:
    deltas = {"tokens": amounts} if isinstance(amounts, int) else amounts
    return one(
        db,
        "ff_record_spend",
        budget_id=budget_id,
        execution_id=execution_id,
        deltas=deltas,
        idempotency_key=key,
    )


def release(db: Any, execution_id: str, budget_id: str = "b") -> tuple[str, int]:
    row = one(db, "ff_release_budget", budget_id=budget_id, execution_id=execution_id)
    return row["outcome"], row["dimensions"]


def attach(db: Any, budget_id: str = "b", **target: Any) -> str:
    return str(one(db, "ff_attach_budget", budget_id=budget_id, **target)["outcome"])


def detach(db: Any, budget_id: str = "b", **target: Any) -> str:
    return str(one(db, "ff_detach_budget", budget_id=budget_id, **target)["outcome"])


def status(db: Any, budget_id: str = "b") -> Row:
    """The first row of the status."""
    return rows(db, "ff_get_budget_status", budget_id=budget_id)[0]


def used(db: Any, budget_id: str = "b") -> dict[str, int]:
    return {
        row["dimension"]: row["current_usage"]
        for row in rows(db, "ff_read_budget_usage_and_limits", budget_id=budget_id)
    }


def sweep(db: Any, name: str, **args: Any) -> tuple[int, int, bool]:
    row = one(db, f"ff_sweep_{name}", **args)
    return row["processed"], row["errors"], row["more"]


def ledger(db: Any) -> list[Row]:
    return table(
        db, "select * from ff_budget_usage_by_exec order by budget_id, execution_id, dimension, reset_epoch"
    )


def breaches(db: Any) -> list[str]:
    return [row["budget_id"] for row in table(db, "select budget_id from ff_budget_breach order by 1")]
