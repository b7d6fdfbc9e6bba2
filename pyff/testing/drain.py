"""A worker for tests: one thread, one connection; it returns when no work is left."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from uuid import uuid4

from psycopg import Connection, Cursor
from psycopg.pq import TransactionStatus

from pyff._generated.errors import PayloadTooLarge
from pyff.app.async_context import AsyncCtx
from pyff.app.context import Ctx
from pyff.app.control import Paused
from pyff.app.registry import App
from pyff.app.run import Run
from pyff.app.task import Task
from pyff.async_engine import AsyncEngine
from pyff.engine import Engine
from pyff.engine_error import EngineError
from pyff.statement import Statement
from pyff.worker.execute import (
    COMPLETE,
    FAIL,
    PUT_OFF,
    classify,
    fail_put_off,
    fail_unstorable,
    set_outcome,
    why_put_off,
)
from pyff.worker.put_off import arguments, put_off

T = TypeVar("T")

LEASE_MS = 86_400_000
"""Leases are not renewed here, and a test may pause in a debugger."""
PASSING = (
    "sweep_attempt_timeouts",
    "sweep_deadlines",
    "sweep_suspensions",
    "sweep_waitpoints",
    "drain_cancel_backlog",
    "drain_sibling_cancels",
    "dispatch_completions",
    "sweep_admissions",
    "sweep_budget_resets",
    "sweep_budget_breaches",
    "fire_schedules",
)
"""The maintenance steps that apply time-based transitions. Nothing is trimmed: a test may inspect it."""


@dataclass(slots=True)
class Drained:
    """The result of `drain`: the number of runs, and the executions by outcome."""

    runs: int = 0
    completed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    put_off: list[str] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)


def drain(
    app: App,
    conn: Connection[Any],
    *,
    lanes: Iterable[str] | None = None,
    capabilities: Iterable[str] | None = None,
    most: int = 10_000,
    reraise: bool = False,
) -> Drained:
    """Runs all ready work, in this thread and on this connection, until nothing is left, including children, due
    retries and resumed tasks. Due timeouts, deadlines and schedules take effect, as with a worker. Delays are not
    waited for: `advance` the clock and drain again.

    If the connection is in a transaction, all work happens inside it, and the test can roll it back. `capabilities`: by
    default all that any task needs. `reraise`: raise the first exception of a task. `most`: the limit of runs, against
    tasks that never end. Leases last a day: then a task that simulated a crash with SystemExit is reclaimed.
    """
    engine = _Inline(conn)
    needed = {need for task in app.tasks.values() for need in task.options.needs}
    offered = sorted(needed if capabilities is None else set(capabilities))
    report = Drained()
    instance = str(uuid4())
    chosen = list(app.lanes() if lanes is None else lanes)
    found = True
    while found:
        found = False
        for lane in chosen:
            while row := engine.claim(
                lane,
                "pyff.testing",
                instance,
                capabilities=offered,
                namespace=app.namespace,
                lease_ttl_ms=LEASE_MS,
            ):
                found = True
                report.runs += 1
                if report.runs > most:
                    raise RuntimeError(
                        f"work is left after {most} runs, the last one of {row.execution_kind!r}"
                    )
                run = Run(
                    row.handle,
                    row.handle_kind,
                    row.execution_id,
                    row.execution_kind,
                    row.payload,
                    row.attempt_index,
                    row.flow_id,
                    row.lane_id,
                    row.namespace,
                    row.tags,
                )
                _execute(app, run, engine)
                _report(app, run, engine, report)
                if reraise and report.errors:
                    raise report.errors[0]
        if not found:
            found = any(row.processed for row in engine.tick(only=PASSING, force=True, max_ms=60_000))
    return report


def _execute(app: App, run: Run, engine: "_Inline") -> None:
    task = run.task = app.tasks.get(run.kind)
    try:
        run.started = 1.0
        if task is not None and task.signature.is_async:
            value = _run_coroutine(lambda: _coroutine(task, run, engine))
        else:
            context = Ctx(run, engine)
            context._enter()
            args = arguments(run)
            signature, fn = task.signature, task.fn  # type: ignore[union-attr]
            value = fn(context, *args) if signature.wants_context else fn(*args)
        if run.lost is not None or run.paused:
            set_outcome(run, Paused())
        else:
            run.result = task.signature.result.encode(value)  # type: ignore[union-attr]
            run.outcome = COMPLETE
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        set_outcome(run, error)


async def _coroutine(task: Task[*tuple[Any, ...], Any], run: Run, engine: "_Inline") -> object:
    context = AsyncCtx(run, cast("AsyncEngine", _Awaitable(engine)))
    await context._enter()
    args = arguments(run)
    return await (task.fn(context, *args) if task.signature.wants_context else task.fn(*args))


def _run_coroutine(make: Callable[[], Any]) -> object:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(make))
    # Called inside a running loop, by an async test.

    box: list[Any] = []

    def other() -> None:
        try:
            box.append((asyncio.run(_awaited(make)), None))
        except BaseException as error:
            box.append((None, error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    value, error = box[0]
    if error is not None:
        raise error
    return value


async def _awaited(make: Callable[[], Any]) -> object:
    return await make()


def _report(app: App, run: Run, engine: Engine, report: Drained) -> None:
    next_one = None
    if run.outcome == PUT_OFF:
        if run.progress_before is None:
            found = engine.describe_execution(run.execution_id)
            run.progress_before = (found and found.progress_message) or ""
        next_one = put_off(run.progress_before, why_put_off(run))
        if next_one.number > app.max_put_offs:
            fail_put_off(run, app.max_put_offs)
    if run.error is not None and not isinstance(run.error, Paused):
        report.errors.append(run.error)
    try:
        if run.outcome == COMPLETE:
            try:
                engine.complete(
                    run.handle,
                    result=run.result,
                    result_encoding=run.task.signature.result.encoding,  # type: ignore[union-attr]
                )
                report.completed.append(run.execution_id)
            except PayloadTooLarge as error:
                report.errors.append(error)
                fail_unstorable(run, str(error))
        if run.outcome == FAIL:
            reason, classification, category = classify(run)
            answer = engine.fail(run.handle, reason=reason, classification=classification, category=category)
            again = answer.outcome == "retry_scheduled"
            (report.retried if again else report.failed).append(run.execution_id)
        elif run.outcome == PUT_OFF and next_one is not None:
            engine.progress(run.handle, message=next_one.message)
            engine.delay(run.handle, delay_ms=next_one.delay_ms)
            report.put_off.append(run.execution_id)
        elif run.outcome != COMPLETE:
            (report.paused if run.paused else report.lost).append(run.execution_id)
    except EngineError as error:
        report.lost.append(run.execution_id)
        report.errors.append(error)


class _Inline(Engine):
    """The engine on the caller's connection. In a transaction, each call has a savepoint: an error undoes only it."""

    def __init__(self, conn: Connection[Any]) -> None:
        super().__init__(conn, check_schema=False)
        self._mine = conn

    def _call(
        self, statement: Statement[T], arguments: Mapping[str, object], conn: Connection[object] | None
    ) -> T:
        if self._mine.info.transaction_status == TransactionStatus.IDLE:
            return super()._call(statement, arguments, conn)
        with self._mine.transaction():
            return super()._call(statement, arguments, conn)


class _Awaitable:
    """The same engine for async tasks: its methods run synchronously, and can be awaited."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> object:
        method = getattr(self._engine, name)
        if not callable(method) or name == "_connection_in_transaction":
            return method

        async def call(*args: object, **kwargs: object) -> object:
            if isinstance(conn := kwargs.get("conn"), _AwaitableConnection):
                kwargs["conn"] = conn.real
            return method(*args, **kwargs)

        return call

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator["_AwaitableConnection"]:
        with self._engine._transaction() as conn:
            yield _AwaitableConnection(conn)


class _AwaitableConnection:
    """The test's connection for async tasks: the same methods, which can be awaited."""

    def __init__(self, real: Any) -> None:  # noqa: ANN401
        self.real = real

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        with self.real.transaction():
            yield

    async def __aiter__(self) -> AsyncIterator[Any]:
        for row in self.real:
            yield row

    def __getattr__(self, name: str) -> object:
        method = getattr(self.real, name)
        if not callable(method):
            return method

        async def call(*args: object, **kwargs: object) -> object:
            answer = method(*args, **kwargs)
            return _AwaitableConnection(answer) if isinstance(answer, Cursor) else answer

        return call


__all__ = ["Drained", "drain"]
