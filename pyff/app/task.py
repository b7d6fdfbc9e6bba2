"""A task: a registered function, and the methods that submit calls of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, TypeVarTuple, overload

from psycopg import AsyncConnection, Connection

from pyff.app.async_handle import AsyncHandle
from pyff.app.control import NotConnected
from pyff.app.handle import Handle
from pyff.app.retry import Retry
from pyff.app.schedule import CatchUp, Schedule
from pyff.app.signature import Signature, signature_of
from pyff.types import EMPTY_OBJECT, JsonValue

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pyff.app.async_context import AsyncCtx
    from pyff.app.context import Ctx
    from pyff.app.registry import App
    from pyff.async_engine import AsyncEngine
    from pyff.engine import Engine

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a task's executions."""

    lane: str
    retry: Retry | None = None
    timeout_ms: int | None = None
    deadline_ms: int | None = None
    needs: frozenset[str] = frozenset()
    priority: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    policy: Mapping[str, JsonValue] = field(default_factory=dict)

    def full_policy(self) -> dict[str, JsonValue]:
        made: dict[str, JsonValue] = dict(self.policy)
        if self.retry is not None:
            made["retry_policy"] = self.retry.policy()
        limits = {"attempt_timeout_ms": self.timeout_ms, "execution_deadline_ms": self.deadline_ms}
        if timeout_policy := {name: ms for name, ms in limits.items() if ms is not None}:
            made["timeout_policy"] = timeout_policy
        return made


class Task(Generic[*Ts, R]):
    """A registered function. Call it to run it directly, `enqueue` it to have a worker run it.

    `aenqueue` and `aenqueue_many` are the same for async programs.
    """

    def __init__(self, app: "App", name: str, fn: Callable[..., Any], options: Options) -> None:
        self.app = app
        self.name = name
        self.fn = fn
        self.options = options
        self.__name__ = name
        # Introspection sees the function.
        update_wrapper(self, fn, updated=())  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<Task {self.name!r} on lane {self.options.lane!r}>"

    if not TYPE_CHECKING:  # typed by the subclasses below

        def __call__(self, *args: object) -> object:
            """Calls the function directly, with its context if it takes one: for tests and for reuse."""
            return self.fn(*args)

    @cached_property
    def signature(self) -> Signature:
        return signature_of(self.fn, self.name)

    @cached_property
    def _policy(self) -> dict[str, JsonValue]:
        return self.options.full_policy()

    def using(
        self,
        *,
        lane: str | None = None,
        priority: int | None = None,
        retry: Retry | None = None,
        timeout_ms: int | None = None,
        deadline_ms: int | None = None,
        needs: Iterable[str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Self:
        """A copy of the task with some options changed."""
        given = {
            "lane": lane,
            "priority": priority,
            "retry": retry,
            "timeout_ms": timeout_ms,
            "deadline_ms": deadline_ms,
            "needs": None if needs is None else frozenset(needs),
            "tags": tags,
        }
        changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return type(self)(self.app, self.name, self.fn, replace(self.options, **changed))

    def enqueue(
        self,
        *args: *Ts,
        key: str | None = None,
        delay_ms: int | None = None,
        at_ms: int | None = None,
        priority: int | None = None,
        tags: Mapping[str, str] | None = None,
        conn: "Connection[Any] | Engine | None" = None,
    ) -> Handle[R]:
        """Submits a call. With a connection as `conn`, it is part of that connection's transaction: committed or rolled
        back with it. With an engine, or the engine that the app is bound to, it commits at once.

        `key`: a repetition with the same key returns the handle of the first call (`outcome` is duplicate). `delay_ms`,
        `at_ms`: the earliest start. `priority` overrides the task's option; `tags` are added to the task's.

        Raises: IdempotencyConflict, LaneNotAccepting, EncodeError, NotConnected.
        """
        engine, joined = connected(self.app, conn)
        made = engine.create_execution(
            self.options.lane,
            **self._creation(args, key=key, delay_ms=delay_ms, at_ms=at_ms, priority=priority, tags=tags),
            conn=joined,
        )
        return Handle(made.execution_id, self.signature.result, engine, made.outcome)

    async def aenqueue(
        self,
        *args: *Ts,
        key: str | None = None,
        delay_ms: int | None = None,
        at_ms: int | None = None,
        priority: int | None = None,
        tags: Mapping[str, str] | None = None,
        conn: "AsyncConnection[Any] | AsyncEngine | None" = None,
    ) -> AsyncHandle[R]:
        """`enqueue` for async programs."""
        engine, joined = _async(self.app, conn)
        made = await engine.create_execution(
            self.options.lane,
            **self._creation(args, key=key, delay_ms=delay_ms, at_ms=at_ms, priority=priority, tags=tags),
            conn=joined,
        )
        return AsyncHandle(made.execution_id, self.signature.result, engine, made.outcome)

    def enqueue_many(
        self,
        calls: Iterable[tuple[*Ts]],
        *,
        keys: Sequence[str | None] | None = None,
        delay_ms: int | None = None,
        conn: "Connection[Any] | Engine | None" = None,
    ) -> list[Handle[R]]:
        """Submits up to 10 000 calls, all or none; each is a tuple of arguments.

        Raises: IdempotencyConflict, LaneNotAccepting, InvalidInput, EncodeError, NotConnected.
        """
        engine, joined = connected(self.app, conn)
        rows = engine.create_executions(
            self.options.lane, **self._creations(calls, keys, delay_ms), conn=joined
        )
        return [Handle(row.execution_id, self.signature.result, engine, row.outcome) for row in rows]

    async def aenqueue_many(
        self,
        calls: Iterable[tuple[*Ts]],
        *,
        keys: Sequence[str | None] | None = None,
        delay_ms: int | None = None,
        conn: "AsyncConnection[Any] | AsyncEngine | None" = None,
    ) -> list[AsyncHandle[R]]:
        """`enqueue_many` for async programs."""
        engine, joined = _async(self.app, conn)
        rows = await engine.create_executions(
            self.options.lane, **self._creations(calls, keys, delay_ms), conn=joined
        )
        return [AsyncHandle(row.execution_id, self.signature.result, engine, row.outcome) for row in rows]

    def schedule(
        self,
        id: str,
        *args: *Ts,
        cron: str | None = None,
        every_ms: int | None = None,
        time_zone: str = "UTC",
        catch_up: CatchUp = "latest",
        start_at_ms: int | None = None,
        end_at_ms: int | None = None,
        max_catch_up: int = 100,
        grace_ms: int = 60_000,
    ) -> None:
        """Declares a schedule of this call; `app.sync_schedules` writes it to the database. Give either a cron
        expression of five fields, in the time zone `time_zone`, or an interval. Of missed ticks, `catch_up` "all" runs
        the last `max_catch_up`, "skip" the last one if it is at most `grace_ms` old. See docs/schedules.md."""
        if id in self.app.schedules:
            raise ValueError(f"schedule {id!r} is already declared")
        if (cron is None) == (every_ms is None):
            raise ValueError("give either cron or every_ms")
        self.signature.encode(args)  # invalid arguments raise here
        self.app.schedules[id] = Schedule(
            id,
            self,
            args,
            cron,
            every_ms,
            time_zone,
            catch_up,
            start_at_ms,
            end_at_ms,
            max_catch_up,
            grace_ms,
        )

    def handle(self, execution_id: str, conn: "Connection[Any] | Engine | None" = None) -> Handle[R]:
        """The handle of an execution of this task that was submitted before, possibly by another process."""
        return Handle(execution_id, self.signature.result, connected(self.app, conn)[0])

    def ahandle(
        self, execution_id: str, conn: "AsyncConnection[Any] | AsyncEngine | None" = None
    ) -> AsyncHandle[R]:
        """`handle` for async programs."""
        return AsyncHandle(execution_id, self.signature.result, _async(self.app, conn)[0])

    def child_options(self, args: Sequence[object]) -> dict[str, Any]:
        """The arguments of create_execution for a call of this task."""
        return {"lane_id": self.options.lane, **self._creation(args)}

    def _creation(
        self,
        args: Sequence[object],
        *,
        key: str | None = None,
        delay_ms: int | None = None,
        at_ms: int | None = None,
        priority: int | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        return {
            **self._common(),
            "payload": self.signature.encode(args),
            "idempotency_key": key,
            "priority": self.options.priority if priority is None else priority,
            "tags": ({**self.options.tags, **tags} if tags else self.options.tags) or EMPTY_OBJECT,
            "delay_ms": delay_ms,
            "delay_until_ms": at_ms,
        }

    def _creations(
        self, calls: Iterable[tuple[*Ts]], keys: Sequence[str | None] | None, delay_ms: int | None
    ) -> dict[str, Any]:
        encode = self.signature.encode
        payloads = [encode(args) for args in calls]
        priority = self.options.priority
        return {
            **self._common(),
            "payloads": payloads,
            "idempotency_keys": None if keys is None else list(keys),
            "priorities": None if priority is None else [priority] * len(payloads),
            "tags": self.options.tags or EMPTY_OBJECT,
            "delay_ms": delay_ms,
        }

    def _common(self) -> dict[str, Any]:
        return {
            "execution_kind": self.name,
            "policy": self._policy or EMPTY_OBJECT,
            "required_capabilities": tuple(sorted(self.options.needs)),
            "namespace": self.app.namespace,
            "payload_encoding": self.signature.encoding,
        }


if TYPE_CHECKING:

    class PlainTask(Task[*Ts, R], Generic[*Ts, R]):
        def __call__(self, *args: *Ts) -> R: ...

    class CtxTask(Task[*Ts, R], Generic[*Ts, R]):
        def __call__(self, ctx: Ctx, /, *args: *Ts) -> R: ...

    class PlainAsyncTask(Task[*Ts, R], Generic[*Ts, R]):
        def __call__(self, *args: *Ts) -> Coroutine[Any, Any, R]: ...

    class AsyncCtxTask(Task[*Ts, R], Generic[*Ts, R]):
        def __call__(self, ctx: AsyncCtx, /, *args: *Ts) -> Coroutine[Any, Any, R]: ...


class Register(Protocol):
    """The decorator that `@app.task(...)` returns, for sync and async functions with or without a context."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, fn: "Callable[[AsyncCtx, *Ts], Coroutine[Any, Any, R]]", /
    ) -> "AsyncCtxTask[*Ts, R]": ...
    @overload
    def __call__(self, fn: "Callable[[Ctx, *Ts], R]", /) -> "CtxTask[*Ts, R]": ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, fn: "Callable[[*Ts], Coroutine[Any, Any, R]]", /
    ) -> "PlainAsyncTask[*Ts, R]": ...
    @overload
    def __call__(self, fn: Callable[[*Ts], R], /) -> "PlainTask[*Ts, R]": ...


def connected(app: "App", conn: "Connection[Any] | Engine | None") -> "tuple[Engine, Connection[Any] | None]":
    """The engine to use, and the caller's connection to use it on, if any."""
    from pyff.engine import Engine

    if isinstance(conn, Connection):
        return app.engine or Engine(conn, check_schema=False), conn
    engine = conn or app.engine
    if engine is None:
        raise NotConnected
    if not isinstance(engine, Engine):
        raise TypeError(
            f"conn: expected an Engine or a psycopg.Connection, got {type(engine).__name__}; "
            "use aenqueue with an AsyncEngine or a psycopg.AsyncConnection"
        )
    return engine, None


def _async(
    app: "App", conn: "AsyncConnection[Any] | AsyncEngine | None"
) -> "tuple[AsyncEngine, AsyncConnection[Any] | None]":
    from pyff.async_engine import AsyncEngine

    if isinstance(conn, AsyncConnection):
        return app.async_engine or AsyncEngine(conn, check_schema=False), conn
    engine = conn or app.async_engine
    if engine is None:
        raise NotConnected
    if not isinstance(engine, AsyncEngine):
        raise TypeError(
            f"conn: expected an AsyncEngine or a psycopg.AsyncConnection, got {type(engine).__name__}; "
            "use enqueue with an Engine or a psycopg.Connection"
        )
    return engine, None


__all__ = ["Options", "Register", "Task", "connected"]
