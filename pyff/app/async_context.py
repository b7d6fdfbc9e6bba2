# Written by hand. `python -m tools.codegen` generates context.py from this file.
"""The context of a running task."""

import asyncio
import functools
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from time import monotonic
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    TypeVarTuple,
    cast,
    overload,
)
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected, SerializationFailure

from pyff._generated.errors import (
    ExecutionAlreadyTerminal,
    ExecutionNotActive,
    LeaseExpired,
    LeaseRevoked,
    StaleLease,
    WaitpointNotFound,
    WaitpointNotPending,
    WaitTimeout,
)
from pyff._generated.results import ReadStepsRow, SuspendRow, UsageResult
from pyff.app.async_handle import AsyncHandle
from pyff.app.awaiting import await_if_needed
from pyff.app.control import CannotRun, DuplicateStep, Paused, TaskFailed
from pyff.app.derived import derived, derived_execution
from pyff.app.resume import RESUME
from pyff.app.run import AsyncCall, AsyncExposed, Run, Shield
from pyff.app.values import Signal, Token
from pyff.async_engine import AsyncEngine
from pyff.codecs.codec import BYTES, JSON, codec_of, from_json, to_json
from pyff.connection_lost import connection_lost
from pyff.engine_error import EngineError
from pyff.types import JsonValue

if TYPE_CHECKING:
    from pyff.app.task import Task

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
R1 = TypeVar("R1")
R2 = TypeVar("R2")
R3 = TypeVar("R3")
R4 = TypeVar("R4")
Ts = TypeVarTuple("Ts")

LOST = (ExecutionAlreadyTerminal, ExecutionNotActive, LeaseExpired, LeaseRevoked, StaleLease)
AGAIN = (SerializationFailure, DeadlockDetected)
OnTimeout = Literal["raise", "fail", "cancel", "expire", "escalate"]
TIMEOUT = "timeout"
MAX_PENDING_MS = 2_592_000_000
PAGE = 1000


class AsyncChild(AsyncHandle[R_co], Generic[R_co]):
    """The handle of a child that a task spawned; `gather` waits for it without holding a worker."""


class AsyncCtx:
    """The context of a running task. It belongs to one run of the task, and to one lease.

    A task that waits, sleeps or gathers releases its lease and its slot. When it resumes, its function is called again
    from the top: finished steps, waits, sleeps and children return their recorded results, found by name, and are not
    repeated. Put everything that must not happen twice into a step.

    Every call is checked against the lease. A run that lost its lease cannot record, emit, spend or wait.
    """

    def __init__(self, run: Run, engine: AsyncEngine, transactions: AsyncEngine | None = None) -> None:
        self._run = run
        self._engine = engine
        self._transactions = transactions or engine  # a separate pool, see Worker.start
        self._names: set[str] = set()
        self._steps: dict[str, ReadStepsRow] | None = None
        self._steps_lock = asyncio.Lock()
        self._anonymous = 0

    @property
    def execution_id(self) -> str:
        return self._run.execution_id

    @property
    def attempt(self) -> int:
        """0 for the first attempt. A retry or a crash starts a new attempt; a pause does not."""
        return self._run.attempt_index

    @property
    def resumed(self) -> bool:
        """Whether this run resumes the same attempt after a pause."""
        return self._run.handle_kind == "resumed"

    @property
    def lane(self) -> str:
        return self._run.lane

    @property
    def tags(self) -> Mapping[str, str]:
        return self._run.tags or {}

    @property
    def scheduled_for_ms(self) -> int | None:
        """The tick of the schedule that created this execution; None if it was not scheduled."""
        tick = self.tags.get("schedule.fire_at_ms")
        return None if tick is None else int(tick)

    @property
    def flow_id(self) -> UUID | None:
        return self._run.flow_id

    @property
    def handle(self) -> str:
        """The handle of the lease, for calls of `engine` that take one."""
        return self._run.handle

    @property
    def engine(self) -> AsyncEngine:
        """The worker's engine, for calls that this class does not offer."""
        return self._engine

    @property
    def cancelled(self) -> bool:
        """Whether the lease is lost, so that further work is discarded."""
        return self._run.lost is not None

    def check(self) -> None:
        """Raises TaskCancelled if the lease is lost: for loops that make no other call of the context."""
        self._run.check()

    def shield(self) -> AbstractContextManager[None]:
        """`with ctx.shield():` delays a cancellation until the end of the block."""
        return Shield(self._run)

    async def progress(self, percent: int | None = None, message: str | None = None) -> None:
        """Reports the progress of the task; `describe` shows it."""
        if message is not None and self.resumed and self._run.progress_before is None:
            # It may hold the number of put-offs (pyff.worker.put_off).
            found = await self._retrying(self._engine.describe_execution, self._run.execution_id)
            self._run.progress_before = (found and found.progress_message) or ""
        await self._fenced(self._engine.progress, percent=percent, message=message)

    async def emit(
        self,
        data: bytes | str | JsonValue,
        *,
        type: str = "event",
        mode: Literal["durable", "durable_summary", "best_effort_live"] = "durable",
        key: str | None = None,
    ) -> str:
        """Appends a frame to the stream of this attempt, which clients can follow live, and returns its id.

        Bytes are sent as they are, str as UTF-8, anything else as JSON. With a `key` a repetition adds nothing.

        Raises: InvalidFrameType, PayloadTooLarge, FrameConflict, InvalidPatch, SummaryTooLarge.
        """
        payload, encoding = _frame(data)
        append = self._fenced if key else self._fenced_once
        frame = await append(
            self._engine.append_frame,
            payload=payload,
            frame_type=type,
            mode=mode,
            encoding=encoding,
            frame_key=key,
        )
        return frame.frame_id

    async def usage(
        self, budget_id: str, deltas: Mapping[str, int], *, key: str | None = None
    ) -> UsageResult:
        """Reports spending from a budget: {"tokens": 1200}. With a `key` a repetition counts once.

        A hard limit rejects the whole report: the outcome is hard_breach, `applied` is false, and the task continues;
        it should stop. If the budget's policy cancels attached work, the task is cancelled like by any other
        cancellation. Put the spending call and its report into one step, so that both happen once.

        Raises: BudgetNotFound, DedupKeyConflict, BudgetOverflow.
        """
        report = self._fenced if key else self._fenced_once
        return await report(self._engine.report_usage, budget_id=budget_id, deltas=deltas, dedup_key=key)

    @overload
    async def step(
        self, name: str, fn: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    async def step(self, name: str, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def step(
        self, name: str, fn: Callable[P, Awaitable[R] | R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Runs `fn` and records its result, once per execution: after a crash, a retry or a pause the recorded result
        is returned instead. An interrupted step runs again, so its external effects should be idempotent.

        The annotated return type of `fn` selects how the result is stored. Without it, the result must be plain JSON.

        Raises: DuplicateStep, EncodeError, PayloadTooLarge, StepLimitExceeded, and what `fn` raises.
        """
        self._use_name(name)
        codec = codec_of(_return_type(fn))
        found = await self._recorded(name)
        if found is None:
            value = await await_if_needed(fn(*args, **kwargs))
            data = codec.encode(value)
            codec.decode(data)  # raises before an unreadable result is recorded
            made = await self._fenced(
                self._engine.record_step, name=name, result=data, result_encoding=codec.encoding
            )
            return cast("R", codec.decode(made.result))
        return cast("R", codec.decode(found.result))

    async def transaction(
        self,
        name: str,
        fn: Callable[Concatenate[AsyncConnection[Any], P], Awaitable[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """A step in the engine's own database, exactly once: `fn` gets a connection in a transaction, and its changes
        are committed together with the record of the step, or not at all. A run that has lost its lease commits
        nothing.

        Raises: DuplicateStep, EncodeError, and what `fn` raises.
        """
        self._use_name(name)
        codec = codec_of(_return_type(fn))
        found = await self._recorded(name)
        if found is not None:
            return cast("R", codec.decode(found.result))
        try:
            async with AsyncCall(self._run), self._transactions._transaction() as conn, conn.transaction():
                with AsyncExposed(self._run):
                    value = await fn(conn, *args, **kwargs)
                made = await self._fenced(
                    self._engine.record_step,
                    name=name,
                    result=codec.encode(value),
                    result_encoding=codec.encoding,
                    conn=conn,
                )
        except psycopg.OperationalError as error:
            self._run.unreachable = self._run.unreachable or connection_lost(error)
            raise
        return cast("R", codec.decode(made.result))

    async def wait(
        self,
        name: str,
        *,
        signals: Iterable[str] = (),
        timeout_ms: int | None = None,
        on_timeout: OnTimeout = "raise",
        on_token: Callable[[Token], Awaitable[object] | object] | None = None,
        reason: str = "waiting_for_signal",
        detail: str | None = None,
    ) -> Signal:
        """Waits for a signal without holding a worker: for seconds or for months.

        `signals`: the names that end the wait; by default any. `on_token` receives the token that allows its holder to
        send a signal; it is called once, before the wait begins, for example to mail the token. A signal that arrives
        before the wait begins counts. The signal is recorded: a later run of this execution gets the same one.

        `on_timeout` is applied after `timeout_ms`: "raise" resumes the task with WaitTimeout, the others end the
        execution (fail, cancel, expire) or leave the wait open for an operator (escalate).

        Raises: WaitTimeout, DuplicateStep, HmacNotInitialized, FlowCancelled.
        """
        place = f"pyff:wait:{name}"
        self._use_name(place)
        found = await self._recorded(place)
        if found is not None:
            return _signal(name, found.result)
        names = [signals] if isinstance(signals, str) else sorted(set(signals))  # the same in every process
        options: dict[str, Any] = {
            "condition": {
                "kind": "single",
                "waitpoint_key": name,
                "matcher": {"one_of": names} if names else "wildcard",
            },
            "reason_code": reason,
            "reason_detail": detail,
            "timeout_ms": timeout_ms,
            "timeout_behavior": None if timeout_ms is None else _BEHAVIOR[on_timeout],
            "idempotency_key": f"wait:{self._run.attempt_index}:{name}",
        }
        if on_token is None:
            rows = await self._call_releasing(self._engine.try_suspend, **options)
        else:
            rows = await self._suspend_with_token(name, options, on_token)
        if rows[0].outcome == "suspended":
            self._pause()
        self._run.pausing = False
        made = await self._record_signal(name, rows[0].suspension_id)
        return _signal(name, next(row.result for row in made if not row.cursor))

    async def _record_signal(
        self, wait: str | None = None, suspension_id: UUID | None = None
    ) -> list[ReadStepsRow]:
        """Records the signal that ended a wait.

        Raises: CannotRun, for every rejection by the database: a failure of the attempt would lose the signal.
        """
        try:
            return await self._fenced(self._load_resumed, wait, suspension_id)
        except LOST:
            raise
        except (EngineError, psycopg.Error) as error:
            if isinstance(error, psycopg.Error) and connection_lost(error):
                raise
            raise CannotRun(f"cannot read or record its signals and steps: {error}") from error

    async def _load_resumed(
        self, handle: str, wait: str | None, suspension_id: UUID | None
    ) -> list[ReadStepsRow]:
        arguments = {
            "handle": handle,
            "wait": wait,
            "suspension_id": suspension_id,
            "execution_id": self._run.execution_id,
        }
        return await self._engine._call(RESUME, arguments, None)

    async def _enter(self) -> None:
        """Records the signal that ended a wait, unless an earlier run did. Called before the payload is decoded and
        the task runs: if these fail, the next run still has the signal."""
        if not self._run.continues:
            return
        found = await self._record_signal()
        known = {row.name: row for row in found}
        read = [row for row in found if row.cursor]
        if len(read) >= PAGE:
            known |= await self._read_steps(read[-1].cursor)
        self._steps = known

    async def _suspend_with_token(
        self, name: str, options: dict[str, Any], on_token: Callable[[Token], Awaitable[object] | object]
    ) -> list[SuspendRow]:
        """Creates the waitpoint, then sends the token, then begins the wait: after a crash in between, the token was
        either sent, or is created again."""
        waitpoint_id = derived(self._run.execution_id, f"wait:{self._run.attempt_index}:{name}")
        options["waitpoints"] = [{"use_pending": str(waitpoint_id)}]
        if self.resumed:
            try:
                return await self._call_releasing(self._engine.try_suspend, **options)
            except (WaitpointNotFound, WaitpointNotPending):
                pass  # the wait has not begun yet
        made = await self._fenced(
            self._engine.create_waitpoint,
            waitpoint_key=name,
            waitpoint_id=waitpoint_id,
            expires_in_ms=MAX_PENDING_MS,
        )
        sent = f"pyff:token:{self._run.attempt_index}:{name}"
        known = await self._recorded(sent)
        if known is None:
            await await_if_needed(on_token(Token(self._run.execution_id, waitpoint_id, made.waitpoint_token)))
            await self._fenced(self._engine.record_step, name=sent)
        return await self._call_releasing(self._engine.try_suspend, **options)

    async def sleep(self, ms: int, *, name: str | None = None) -> None:
        """Sleeps without holding a worker. The time counts from the first run that reached this call.

        Without a `name`, the sleeps of a task are identified by their order.

        Raises: DuplicateStep, FlowCancelled.
        """
        place = f"pyff:sleep:{name or self._next_number()}"
        self._use_name(place)
        found = await self._recorded(place)
        if found is None:
            made = await self._fenced(self._engine.record_step, name=place)
            since = now = made.recorded_at_ms
        else:
            since = found.recorded_at_ms
            now = await self._retrying(self._engine.now_ms)
            if now >= since + ms:
                return
        await self._call_releasing(self._engine.delay, delay_until_ms=since + ms)
        self._run.sleeps_s = (since + ms - now) / 1000
        self._pause()

    async def spawn(
        self,
        task: "Task[*Ts, R]",
        *args: *Ts,
        key: str | None = None,
        tags: Mapping[str, str] | None = None,
        detached: bool = False,
    ) -> AsyncChild[R]:
        """Submits a call of another task as a child of this one, in the same flow, without waiting. A later run finds
        the same child by `key`; without keys, the children of one task are identified by their order. Each child counts
        as a recorded step.

        If this task ends without success, its children that have not ended are cancelled; if it is replayed, its
        children that did not succeed run again. `detached` children are independent of both.

        The login of the worker also needs the role ff_producer.

        Raises: DuplicateStep, LaneNotAccepting, FlowAlreadyTerminal, EncodeError.
        """
        label = f"pyff:spawn:{task.name}:{key or self._next_number()}"
        self._use_name(label)
        child = derived_execution(self._run.execution_id, label)
        known = await self._recorded(label)
        if known is not None:
            return AsyncChild(child, task.signature.result, self._engine, "duplicate")
        options = task.child_options(args)
        if tags:
            options["tags"] = {**options["tags"], **tags}
        options["detached"] = detached
        outcome = await self._fenced(self._spawn, label, child, options)
        return AsyncChild(child, task.signature.result, self._engine, outcome)

    async def _spawn(
        self, handle: str, label: str, child: str, options: dict[str, Any]
    ) -> Literal["created", "duplicate"]:
        """Creates the child, its edge and the step in one transaction: a run that has lost its lease spawns nothing.
        The step comes last, since flows are locked before executions."""
        mine = self._run.execution_id
        flow_id = self._run.flow_id
        async with self._engine._transaction() as conn, conn.transaction():
            if flow_id is None:
                flow_id = derived(mine, "pyff:flow")
                await self._engine.create_flow(
                    flow_id=flow_id, namespace=self._run.namespace, flow_kind="task", conn=conn
                )
                await self._engine.add_execution_to_flow(flow_id, mine, conn=conn)
            made = await self._engine.create_execution(
                **options, flow_id=flow_id, execution_id=child, parent_execution_id=mine, conn=conn
            )
            await self._engine.add_dependency(
                flow_id,
                child,
                mine,
                edge_id=derived(mine, f"edge/{label}"),
                dependency_kind="any_terminal",
                conn=conn,
            )
            await self._engine.record_step(handle, label, conn=conn)
        self._run.flow_id = flow_id
        return made.outcome

    @overload
    async def gather(self, child1: AsyncChild[R1], child2: AsyncChild[R2], /) -> list[R1 | R2]: ...
    @overload
    async def gather(
        self, child1: AsyncChild[R1], child2: AsyncChild[R2], child3: AsyncChild[R3], /
    ) -> list[R1 | R2 | R3]: ...
    @overload
    async def gather(
        self,
        child1: AsyncChild[R1],
        child2: AsyncChild[R2],
        child3: AsyncChild[R3],
        child4: AsyncChild[R4],
        /,
    ) -> list[R1 | R2 | R3 | R4]: ...
    @overload
    async def gather(self, *children: AsyncChild[R]) -> list[R]: ...
    async def gather(self, *children: AsyncChild[R]) -> list[R]:
        """The results of the children, in order. The task waits, without holding a worker, until every child spawned so
        far has ended.

        Raises: TaskFailed for the first of these children that did not complete; FlowCancelled.
        """
        await self._await_children()
        found: list[R] = []
        for child in children:
            found.append(await child.result(0))
        return found

    @overload
    async def settle(
        self, child1: AsyncChild[R1], child2: AsyncChild[R2], /
    ) -> list[R1 | R2 | TaskFailed]: ...
    @overload
    async def settle(
        self, child1: AsyncChild[R1], child2: AsyncChild[R2], child3: AsyncChild[R3], /
    ) -> list[R1 | R2 | R3 | TaskFailed]: ...
    @overload
    async def settle(
        self,
        child1: AsyncChild[R1],
        child2: AsyncChild[R2],
        child3: AsyncChild[R3],
        child4: AsyncChild[R4],
        /,
    ) -> list[R1 | R2 | R3 | R4 | TaskFailed]: ...
    @overload
    async def settle(self, *children: AsyncChild[R]) -> list[R | TaskFailed]: ...
    async def settle(self, *children: AsyncChild[object]) -> list[Any]:
        """`gather`, with a TaskFailed in place of each child that did not complete."""
        await self._await_children()
        found: list[object] = []
        for child in children:
            try:
                found.append(await child.result(0))
            except TaskFailed as failed:
                found.append(failed)
        return found

    async def _await_children(self) -> None:
        result = await self._call_releasing(self._engine.wait_children)
        if result.outcome != "ready":
            self._pause()
        self._run.pausing = False

    def _use_name(self, name: str) -> None:
        if name in self._names:
            raise DuplicateStep(name.removeprefix("pyff:"))
        self._names.add(name)

    def _next_number(self) -> str:
        self._anonymous += 1
        return f"#{self._anonymous}"

    def _pause(self) -> typing.NoReturn:
        self._run.paused = True
        raise Paused

    async def _recorded(self, name: str) -> ReadStepsRow | None:
        self._run.check()
        if self._steps is None:
            async with self._steps_lock:  # steps may run concurrently
                if self._steps is None:
                    self._steps = await self._read_steps()
        return self._steps.get(name)

    async def _read_steps(self, after: str | None = None) -> dict[str, ReadStepsRow]:
        found: dict[str, ReadStepsRow] = {}
        if not self._run.continues:
            return found
        while rows := await self._retrying(self._engine.read_steps, self._run.execution_id, after=after):
            found.update((row.name, row) for row in rows)
            after = rows[-1].cursor
            if len(rows) < PAGE:
                break
        return found

    async def _call_releasing(
        self, verb: Callable[Concatenate[str, P], Awaitable[R]], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """A call that may release the lease. The caller then pauses, or resets `pausing`."""
        self._run.pausing = True
        try:
            return await self._fenced(verb, *args, **kwargs)
        except BaseException:
            self._run.pausing = False
            raise

    async def _fenced(
        self, verb: Callable[Concatenate[str, P], Awaitable[R]], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """An idempotent call under the lease. A rejection by the fence ends this run."""
        self._run.check()
        try:
            return await self._retrying(verb, self._run.handle, *args, **kwargs)
        except LOST as error:
            self._run.lost = self._run.lost or error.kind
            raise

    async def _fenced_once(
        self, verb: Callable[Concatenate[str, P], Awaitable[R]], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """A call under the lease that is not idempotent, and not retried."""
        self._run.check()
        try:
            with AsyncCall(self._run):
                return await verb(self._run.handle, *args, **kwargs)
        except LOST as error:
            self._run.lost = self._run.lost or error.kind
            raise
        except psycopg.OperationalError as error:
            self._run.unreachable = self._run.unreachable or connection_lost(error)
            raise

    async def _retrying(self, verb: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """A call that is retried after a lost connection, a serialization failure or a deadlock while the lease lasts:
        a restart of the database does not fail the task."""
        pause = 0.05
        while True:
            try:
                with AsyncCall(self._run):
                    return await verb(*args, **kwargs)
            except psycopg.OperationalError as error:
                lost = connection_lost(error)
                if not lost and not isinstance(error, AGAIN):
                    raise
                self._run.unreachable = self._run.unreachable or lost
                if monotonic() >= self._run.deadline or kwargs.get("conn") is not None:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.5)
            self._run.check()


_BEHAVIOR = {
    "raise": "auto_resume_with_timeout_signal",
    "fail": "fail",
    "cancel": "cancel",
    "expire": "expire",
    "escalate": "escalate",
}


def _return_type(fn: Callable[..., object]) -> object:
    """The annotated return type of a function; of a coroutine function, the type of the awaited result."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    if not isinstance(fn, type) and not hasattr(fn, "__annotations__"):
        fn = getattr(fn, "__call__", fn)  # noqa: B004
    try:
        return typing.get_type_hints(fn, include_extras=True).get("return", Any)
    except (TypeError, NameError, AttributeError):
        return Any


def _frame(data: bytes | str | JsonValue) -> tuple[bytes, str]:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data), BYTES
    if isinstance(data, str):
        return data.encode(), "utf8"
    return to_json(data), JSON


def _signal(wait: str, stored: bytes | None) -> Signal:
    found = cast("dict[str, Any]", from_json(stored or b"{}"))
    if found.get("name") == TIMEOUT and found.get("source_type") == "engine":
        raise WaitTimeout(f"wait {wait!r} timed out without a signal", detail={"wait": wait})
    payload = found.get("payload")
    return Signal(
        str(found.get("name", "")),
        None if payload is None else bytes.fromhex(payload),
        str(found.get("source", "")),
        str(found.get("source_type", "")),
    )


__all__ = ["AsyncChild", "AsyncCtx"]
