"""ctx.usage: budgets inside a task."""

import threading

import pytest

from pyff import AsyncCtx, BudgetNotFound, Ctx, Fail, Fixed, TaskCancelled, TaskFailed, Worker
from pyff.testing import drain
from tests.worker.conftest import until


def spent(engine, budget="calls"):
    return [(u.dimension, u.current_usage) for u in engine.read_budget_usage_and_limits(budget)]


def test_a_hard_limit_is_told_to_the_task_and_nothing_is_counted(app, engine, db):
    """The task continues; it decides whether to stop."""
    engine.create_budget("calls", ["tokens", "usd"], [1000, 0], [600, 0])
    seen = []

    @app.task()
    def prompts(ctx: Ctx) -> int:
        for number in range(5):
            usage = ctx.usage("calls", {"tokens": 400, "usd": 1})
            seen.append(
                (usage.outcome, usage.applied, usage.dimension, usage.current_usage, usage.limit_value)
            )
            if not usage.applied:
                raise Fail(f"used up after {number}", retryable=False, category="budget")
        return 5

    handle = prompts.enqueue()
    drain(app, db)
    assert seen == [
        ("ok", True, None, None, None),
        ("soft_breach", True, "tokens", 800, 600),
        ("hard_breach", False, "tokens", 800, 1000),
    ]
    assert spent(engine) == [("tokens", 800), ("usd", 2)]
    with pytest.raises(TaskFailed, match="used up after 2") as caught:
        handle.result(0)
    assert caught.value.category == "budget"


def test_a_key_counts_once_however_often_the_task_is_run_again(app, engine, db):
    engine.create_budget("calls", ["tokens"], [1000], [0])
    outcomes = []

    @app.task(retry=Fixed(max=2, delay_ms=0))
    def prompts(ctx: Ctx) -> None:
        usage = ctx.usage("calls", {"tokens": 300}, key=f"{ctx.execution_id}/1")
        outcomes.append((usage.outcome, usage.original_outcome))
        ctx.step("spend", lambda: ctx.usage("calls", {"tokens": 10}).applied)
        if ctx.attempt < 2:
            raise OSError

    prompts.enqueue()
    drain(app, db)
    assert outcomes == [("ok", None), ("already_applied", "ok"), ("already_applied", "ok")]
    assert spent(engine) == [("tokens", 310)]


def test_an_async_task_reports_too_and_a_budget_that_is_not_there_is_an_error(app, engine, db):
    engine.create_budget("calls", ["tokens"], [1000], [0])

    @app.task()
    async def prompts(ctx: AsyncCtx) -> bool:
        with pytest.raises(BudgetNotFound):
            await ctx.usage("nobody", {"tokens": 1})
        return (await ctx.usage("calls", {"tokens": 1001})).applied

    handle = prompts.enqueue()
    drain(app, db, reraise=True)
    assert handle.result(0) is False


def test_a_budget_that_cancels_what_is_attached_reaches_the_running_task(app, engine, dsn):
    """The report itself only says hard_breach; the cancellation comes from the sweep, and is seen at a renewal."""
    engine.create_budget("calls", ["tokens"], [1000], [0], on_hard_limit="cancel_all")
    told, begun = [], threading.Event()

    @app.task()
    def prompts(ctx: Ctx) -> None:
        begun.wait(90)
        told.append(ctx.usage("calls", {"tokens": 2000}).outcome)
        try:
            while True:
                begun.wait(90)
                ctx.check()
        except TaskCancelled:
            told.append("cancelled")
            raise

    handle = prompts.enqueue()
    engine.attach_budget("calls", execution_id=handle.execution_id)
    with Worker(app, dsn, maintain=False, lease_ttl_ms=1500) as worker:
        until(lambda: worker.health().listening)
        begun.set()
        until(lambda: told == ["hard_breach"])
        engine.sweep_budget_breaches()
        until(lambda: told == ["hard_breach", "cancelled"])
        until(lambda: handle.state() == "cancelled")
    assert handle.describe().cancellation_reason == "budget_exceeded"
