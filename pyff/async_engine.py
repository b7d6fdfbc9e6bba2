# Written by hand. `python -m tools.codegen` generates engine.py from this file.
"""The engine: connections, transactions, retries and errors around the generated methods."""

import asyncio
import random
import select
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any, Generic, Self, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.errors import DeadlockDetected, InsufficientPrivilege, InternalError_, SerializationFailure
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool

from pyff._generated.async_methods import AsyncMethods
from pyff._generated.results import CancelFlowResult, FrameRow, ReadEventsRow
from pyff.async_follow import Patience, events, frames
from pyff.errors import RetryExhausted, WaitTimeout, translate
from pyff.listener import AsyncWakeup, Listener
from pyff.statement import Statement

T = TypeVar("T")

FAMILIES = ("completion", "lease", "suspension", "signal", "operator", "worker", "flow")
PAUSES = (0.01, 0.04, 0.16)  # seconds before each retry, +-50 %
COLLISIONS = (SerializationFailure, DeadlockDetected, InternalError_)


@dataclass(slots=True)
class Invocation(Generic[T]):
    """One call of a method. `sent`: the server may have received it."""

    statement: Statement[T]
    text: bytes
    values: dict[str, object]
    sent: bool = False


class AsyncEngine(AsyncMethods):
    """Calls the SQL functions of the engine. Its only state is connections.

    `source` is a DSN, or the caller's own connection or pool, which the engine does not close. With a DSN the engine
    opens a pool of `min_size` to `max_size` connections at first use, and `close()` closes it.

    Every method runs in its own transaction, which is retried three times after a serialization failure or a
    deadlock, and when an upgrade replaces the function during the call. With `conn=`, or when the caller's own
    connection is inside a transaction, it runs in that transaction: nothing is committed, rolled back or retried.

    `prepare_threshold=None` turns prepared statements off, for a connection pooler in transaction mode.
    The first call checks that the schema of the database fits this version of pyff.

    With a DSN or a pool, any number of threads or tasks may share one engine. Connections of your own pool
    should be in autocommit mode: a call is then one round trip instead of three.
    """

    def __init__(
        self,
        source: str | AsyncConnection[object] | AsyncConnectionPool[Any],
        *,
        prepare_threshold: int | None = 5,
        check_schema: bool = True,
        min_size: int = 1,
        max_size: int = 10,
    ) -> None:
        self._connection: AsyncConnection[object] | None = None
        self._pool: AsyncConnectionPool[Any] | None = None
        self._dsn = ""
        if isinstance(source, str):
            options = {
                "autocommit": True,  # one statement is one transaction, in one round trip
                "prepare_threshold": prepare_threshold,
                "fallback_application_name": "pyff",
            }
            self._dsn = source
            self._pool = AsyncConnectionPool(
                source, kwargs=options, min_size=min_size, max_size=max_size, open=False
            )
        elif isinstance(source, AsyncConnection):
            self._connection = source
        elif isinstance(source, AsyncConnectionPool):
            self._pool = source
        else:
            raise TypeError(f"expected a DSN, a connection or a pool, got {type(source).__name__}")
        self._prepare = False if prepare_threshold is None else None
        self._lock = asyncio.Lock()
        self._owns_pool = isinstance(source, str)
        self._listener = _listener(self._pool)
        self._opened = not self._owns_pool
        self._checked = not check_schema

    async def close(self) -> None:
        """Closes the pool that the engine opened, and the connection on which followers LISTEN."""
        try:
            if self._listener is not None:
                await asyncio.to_thread(self._listener.close)
        finally:  # even if cancelled
            if self._owns_pool and self._pool is not None:
                self._opened = True  # a closed engine does not reopen
                await self._pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def subscribe(
        self,
        family: str | None = None,
        *,
        after: str | None = None,
        namespace: str | None = None,
        tags: Mapping[str, str] | None = None,
        execution_id: str | None = None,
        event_types: Sequence[str] | None = None,
        partition: int | None = None,
        limit: int = 256,
        watermarks: bool = False,
        follow: bool = True,
        poll_s: float = 1.0,
        listen: bool | None = None,
        patience_s: float = 60.0,
    ) -> AsyncGenerator[ReadEventsRow, None]:
        """The events of one family (or of all) after a cursor, without end: gap-free, each once, in order.

        `after` is the `cursor` of the last event seen; "now" starts with future events. None starts with the oldest
        retained event of the family; for all families, with the first event after the most recent trim of any of them:
        older events of families that are kept longer are omitted, since their cursors would be valid for these families
        only. `StoredCursor` stores the cursor together with the effects of the events.
        The filters are those of `read_events`; with `watermarks` the rows of event_type watermark are included, whose
        cursor is the progress of the filter. With `follow=False` the iteration ends where events are complete.

        Events are read every `poll_s` seconds, and when the database notifies the family. `listen`: whether to LISTEN,
        on one more connection that all followers of the engine share; the default is true, unless the engine is
        configured for a pooler (`prepare_threshold=None`) or uses the caller's own connection. An unreachable server is
        retried for `patience_s` seconds; a rejected connection and a closed pool are not retried.

        Raises: those of `read_events`, in particular CursorExpired and EventGenerationStale; ValueError: limit below 1.
        """
        _check_limit(limit)
        filters = {
            "family": family,
            "namespace": namespace,
            "tags": tags,
            "execution_id": execution_id,
            "event_types": event_types,
            "partition": partition,
        }
        return events(
            self,
            self._wakeup([f"ff_event_{name}" for name in ([family] if family else FAMILIES)], listen),
            filters,
            after=after,
            limit=limit,
            watermarks=watermarks,
            follow=follow,
            poll_s=poll_s,
            patience=self._patience(patience_s),
        )

    def tail(
        self,
        execution_id: str,
        attempt_index: int,
        *,
        after: str = "0-0",
        limit: int = 100,
        visibility: str = "all",
        follow: bool = True,
        poll_s: float = 1.0,
        listen: bool | None = None,
        patience_s: float = 60.0,
    ) -> AsyncGenerator[FrameRow, None]:
        """The frames of an attempt's stream after a frame id, until the stream is closed and read to its end.

        With `follow=False` the iteration ends with the existing frames. `poll_s`, `listen` and `patience_s` are those
        of `subscribe`.

        Raises: those of `tail_stream`; ValueError: limit below 1.
        """
        _check_limit(limit)
        channel = f"ff_stream_{execution_id.rpartition(':')[2].lower()}_{attempt_index}"
        return frames(
            self,
            self._wakeup([channel], listen if follow else False),
            execution_id,
            attempt_index,
            after=after,
            limit=limit,
            visibility=visibility,
            follow=follow,
            poll_s=poll_s,
            patience=self._patience(patience_s),
        )

    def _wakeup(self, channels: Sequence[str], listen: bool | None) -> AsyncWakeup:
        wanted = self._prepare is None if listen is None else listen
        return AsyncWakeup(self._listener if wanted else None, channels)

    def _patience(self, seconds: float) -> Patience:
        return Patience(
            0 if self._pool is None else seconds
        )  # a lost connection of the caller cannot be replaced

    async def cancel_flow(
        self,
        flow_id: UUID,
        *,
        policy: str = "cancel_all",
        reason: str = "flow_cancelled",
        cancelled_by: str = "operator",
        max_members: int = 1000,
        wait: float | None = None,
        conn: AsyncConnection[object] | None = None,
    ) -> CancelFlowResult:
        """Cancels a flow permanently. cancel_all: every member that has not ended; cancel_pending: members without a
        live lease; cancel_flow_only: members continue, the graph is frozen. The first call ends up to max_members.
        wait: seconds to wait, in further transactions, until every member that the policy covers has ended; it cannot
        be used inside a transaction of the caller.

        Raises: InvalidInput, FlowNotFound, WaitTimeout.
        """
        if wait is not None and (conn or self._connection_in_transaction()):
            raise ValueError("wait: cannot wait inside a transaction of the caller; commit first")
        result = await super().cancel_flow(
            flow_id,
            policy=policy,
            reason=reason,
            cancelled_by=cancelled_by,
            max_members=max_members,
            conn=conn,
        )
        if wait is not None:
            await self._wait_cancelled(flow_id, wait)
        return result

    async def _wait_cancelled(self, flow_id: UUID, seconds: float) -> None:
        until = monotonic() + seconds
        while True:
            found = await self.describe_flow(flow_id)
            if found is None or not found.cancel_pending:
                return
            if monotonic() >= until:
                raise WaitTimeout(
                    "members of the cancelled flow have not ended",
                    detail={"flow_id": str(flow_id), "cancel_pending": found.cancel_pending},
                )
            try:
                batch = await self.drain_cancel_backlog(flow_id=flow_id)
                drained = batch.processed
            except InsufficientPrivilege:
                drained = 0  # an operator or maintenance drains
            if not drained:
                await asyncio.sleep(min(0.1, max(0.0, until - monotonic())))

    async def _call(
        self,
        statement: Statement[T],
        arguments: Mapping[str, object],
        conn: AsyncConnection[object] | None,
    ) -> T:
        joined = conn or self._connection_in_transaction()
        call = Invocation(statement, *statement.call(arguments))
        # A call in a transaction of the caller is rolled back when the connection is lost.
        lasting = joined is None or (joined.autocommit and not _in_transaction(joined))
        try:
            if joined is not None:
                return await self._execute(joined, call)
            return await self._retrying(call)
        except psycopg.Error as error:
            translated = translate(error, may_have_run=call.sent and lasting)
            if translated is error:
                raise
            raise translated from error

    async def _retrying(self, call: Invocation[T]) -> T:
        for pause in PAUSES:
            try:
                return await self._once(call)
            except COLLISIONS as error:
                if isinstance(error, InternalError_) and not replaced(error):
                    raise
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
        try:
            return await self._once(call)
        except (SerializationFailure, DeadlockDetected) as error:
            raise RetryExhausted(detail={"sqlstate": error.sqlstate, "attempts": len(PAUSES) + 1}) from error

    async def _once(self, call: Invocation[T]) -> T:
        call.sent = False
        async with self._transaction() as conn:
            return await self._execute(conn, call)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[AsyncConnection[object]]:
        """A connection on which one statement is one transaction."""
        if self._pool is not None:
            if not self._opened:
                await self._open(self._pool)
            conn = await _live(self._pool)
            try:
                if conn.autocommit:
                    yield conn
                else:
                    async with conn:
                        yield conn
            finally:
                await self._pool.putconn(conn)
        elif self._connection is not None and self._connection.autocommit:
            yield self._connection
        elif self._connection is not None:
            async with self._connection.transaction():
                yield self._connection

    async def _execute(self, conn: AsyncConnection[object], call: Invocation[T]) -> T:
        if not self._checked:
            await self._check_schema(conn)
        cursor = AsyncCursor(conn, row_factory=tuple_row)
        call.sent = not conn.closed
        await cursor.execute(call.text, call.values, prepare=self._prepare, binary=True)
        rows = await cursor.fetchall()
        make = call.statement.make
        return call.statement.read([make(*row) for row in rows])

    def _connection_in_transaction(self) -> AsyncConnection[object] | None:
        conn = self._connection
        return conn if conn is not None and _in_transaction(conn) else None

    async def _open(self, pool: AsyncConnectionPool[Any]) -> None:
        async with self._lock:
            if not self._opened:
                probe = await AsyncConnection.connect(self._dsn)  # a pool would hide the reason of a failure
                await probe.close()
                await pool.open()
                if self._opened:  # close() was called meanwhile
                    await pool.close()
                    return
                self._opened = True
                # Without this wait the first call would find the pool empty and open a second connection. pool.wait
                # closes the pool if it is interrupted, or if some of min_size connections fail.
                until = monotonic() + 1
                while pool.min_size and not pool.get_stats()["pool_available"] and monotonic() < until:
                    await asyncio.sleep(0.001)

    async def _check_schema(self, conn: AsyncConnection[object]) -> None:
        from pyff.migrate import require_current_async

        async with self._lock:
            if not self._checked:
                await require_current_async(conn)
                self._checked = True


def _listener(pool: AsyncConnectionPool[Any] | None) -> Listener | None:
    if pool is None or not isinstance(pool.conninfo, str):
        return None
    options = pool.kwargs if isinstance(pool.kwargs, dict) else {}
    return Listener(pool.conninfo, {"fallback_application_name": "pyff", **options})


async def _live(pool: AsyncConnectionPool[Any]) -> AsyncConnection[Any]:
    """A connection of the pool that the server has not closed while it was idle. Costs no round trip: a healthy idle
    connection has nothing to read. Dead ones go back, and the pool replaces them; its own check would pause between."""
    while True:
        conn: AsyncConnection[Any] = await pool.getconn()
        try:
            poll = select.poll()
            poll.register(conn.fileno(), select.POLLIN)
            if poll.poll(0):
                await AsyncConnectionPool.check_connection(conn)  # it may be only a notice
        except psycopg.OperationalError:
            await pool.putconn(conn)
        except BaseException:
            await pool.putconn(conn)
            raise
        else:
            return conn


def _in_transaction(conn: AsyncConnection[object]) -> bool:
    return conn.info.transaction_status != TransactionStatus.IDLE


def replaced(error: InternalError_) -> bool:
    """Whether an upgrade dropped the called signature: PostgreSQL does not lock a function before it runs."""
    return (error.diag.message_primary or "").startswith("cache lookup failed for function")


def _check_limit(limit: int) -> None:
    if limit < 1:
        raise ValueError("limit: must be at least 1 (rows per read)")


__all__ = ["AsyncEngine"]
