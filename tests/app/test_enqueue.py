"""Submitting calls of tasks."""

import dataclasses
import json
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from pyff import (
    App,
    AsyncEngine,
    Backoff,
    Engine,
    ExecutionNotFound,
    Fixed,
    IdempotencyConflict,
    NotConnected,
    TaskFailed,
    WaitTimeout,
)
from pyff.codecs import EncodeError
from pyff.testing import drain


@dataclasses.dataclass
class Order:
    id: int
    total: float = 0.0


def test_a_call_is_part_of_the_callers_transaction(app, connect, db):
    @app.task()
    def charge(order: Order) -> int:
        return order.id

    mine = connect(autocommit=False)
    lost = charge.enqueue(Order(1), conn=mine)
    mine.rollback()
    with pytest.raises(ExecutionNotFound):
        lost.state()
    kept = charge.enqueue(Order(2), conn=mine)
    with pytest.raises(ExecutionNotFound):
        kept.state()
    mine.commit()
    assert kept.state() == "waiting"
    assert db.execute("select count(*) from ff_exec_core").fetchone()[0] == 1


def test_one_argument_is_the_payload_and_several_are_an_array(app, engine):
    @app.task()
    def one(order: Order) -> None: ...

    @app.task()
    def two(order: Order, note: str) -> None: ...

    @app.task()
    def none() -> None: ...

    @app.task()
    def raw(data: bytes) -> bytes:
        return data

    def stored(handle):
        context = engine.read_execution_context(handle.execution_id)
        return context.payload, context.payload_encoding

    payload, encoding = stored(one.enqueue(Order(1, 2.5)))
    assert (json.loads(payload), encoding) == ({"id": 1, "total": 2.5}, "json")
    payload, _ = stored(two.enqueue(Order(1), "hi"))
    assert json.loads(payload) == [{"id": 1, "total": 0.0}, "hi"]
    assert stored(none.enqueue()) == (None, "json")
    assert stored(raw.enqueue(b"\x00\x01")) == (b"\x00\x01", "bytes")


def test_a_payload_that_another_client_wrote_fits_by_name_or_by_place(app, engine, db):
    seen = []

    @app.task()
    def note(order: Order, text: str, urgent: bool = False) -> None:
        seen.append((order, text, urgent))

    for priority, payload in ((2, b'{"order": {"id": 1}, "text": "a"}'), (1, b'[{"id": 2}, "b", true]')):
        engine.create_execution("default", execution_kind="note", payload=payload, priority=priority)
    assert len(drain(app, db, reraise=True).completed) == 2
    assert seen == [(Order(1), "a", False), (Order(2), "b", True)]


def test_none_that_was_given_is_not_the_default(app, db):
    seen = []

    @app.task()
    def one(limit: int | None = 100) -> None:
        seen.append(limit)

    @app.task()
    def two(a: int | None = 1, b: int | None = 2) -> None:
        seen.append((a, b))

    one.enqueue(None)
    one.using().enqueue_many([(), (5,)])
    two.enqueue(None, None)
    drain(app, db)
    assert sorted(seen, key=str) == [(None, None), 100, 5, None]


def test_a_repeated_key_gives_the_handle_of_the_first_call(app):
    @app.task()
    def charge(order: Order) -> None: ...

    first = charge.enqueue(Order(1), key="order-1")
    again = charge.enqueue(Order(1), key="order-1")
    assert (first.outcome, again.outcome) == ("created", "duplicate")
    assert first.execution_id == again.execution_id
    with pytest.raises(IdempotencyConflict):
        charge.enqueue(Order(2), key="order-1")


def test_many_calls_are_submitted_at_once_or_not_at_all(app, db):
    @app.task(priority=7)
    def double(n: int) -> int:
        return 2 * n

    handles = double.enqueue_many([(n,) for n in range(50)], keys=[*(f"k{n}" for n in range(49)), None])
    assert [h.outcome for h in handles] == ["created"] * 50
    with pytest.raises(EncodeError):
        double.enqueue_many([(1,), (object(),)])
    assert db.execute("select count(*), min(priority) from ff_exec_core").fetchone() == (50, 7)
    drain(app, db)
    assert [h.result(0) for h in handles] == [2 * n for n in range(50)]


def test_the_options_of_a_task_become_the_policy_of_its_executions(app, engine):
    @app.task(
        "pay",
        lane="billing",
        retry=Backoff(max=5, base_ms=500, jitter=False),
        timeout_ms=60_000,
        deadline_ms=90_000,
        needs={"gpu", "eu"},
        priority=3,
        tags={"app.team": "a"},
        policy={"max_replay_count": 2},
    )
    def charge(order: Order) -> None: ...

    row = charge.enqueue(Order(1), tags={"app.order": "1"}).describe()
    assert (row.execution_kind, row.lane_id, row.priority) == ("pay", "billing", 3)
    assert list(row.required_capabilities) == ["eu", "gpu"]
    assert row.tags == {"app.team": "a", "app.order": "1"}
    assert row.policy["max_replay_count"] == 2
    assert row.policy["retry_policy"]["max_retries"] == 5
    assert row.policy["retry_policy"]["backoff"]["initial_delay_ms"] == 500
    assert row.policy["timeout_policy"]["attempt_timeout_ms"] == 60_000
    assert row.deadline_at_ms == row.created_at_ms + 90_000
    changed = charge.using(lane="other", retry=Fixed(1, 5), needs=()).enqueue(Order(1), priority=9).describe()
    assert (changed.lane_id, changed.priority, list(changed.required_capabilities)) == ("other", 9, [])
    assert changed.policy["retry_policy"]["backoff"] == {"type": "fixed", "delay_ms": 5}


def test_a_delayed_call_waits(app, engine):
    @app.task()
    def later() -> None: ...

    assert later.enqueue(delay_ms=60_000).state() == "delayed"
    assert later.enqueue(at_ms=engine.now_ms() + 60_000).state() == "delayed"


def test_a_handle_tells_the_result_the_failure_and_the_cancellation(app, db):
    @app.task()
    def divide(a: int, b: int) -> float:
        return a / b

    good, bad, gone, slow = (divide.enqueue(1, b) for b in (2, 0, 3, 4))
    assert gone.cancel("changed my mind")
    assert not gone.cancel()
    drain(app, db, lanes=[])
    with pytest.raises(WaitTimeout) as waited:
        slow.result(timeout=0.01)
    assert waited.value.detail["public_state"] == "waiting"
    drain(app, db)
    assert good.result() == 0.5
    with pytest.raises(TaskFailed, match="ZeroDivisionError: division by zero") as failed:
        bad.result()
    assert (failed.value.state, failed.value.category) == ("failed", "ZeroDivisionError")
    with pytest.raises(TaskFailed) as cancelled:
        gone.result()
    assert cancelled.value.state == "cancelled"
    assert divide.handle(good.execution_id).result() == 0.5


def test_a_handle_does_not_wait_inside_the_transaction_that_would_have_to_end_first(engine, connect):
    app = App()

    @app.task()
    def nothing() -> None: ...

    mine = connect(autocommit=False)
    handle = nothing.enqueue(conn=mine)
    with pytest.raises(ValueError, match="commit first"):
        handle.result(timeout=1)
    mine.commit()
    with pytest.raises(WaitTimeout):
        handle.result(timeout=0)


async def test_async_programs_have_the_same(dsn, db):
    async with AsyncEngine(dsn) as engine:
        app = App().bind(async_engine=engine)

        @app.task()
        async def double(n: int) -> int:
            return 2 * n

        async with await psycopg.AsyncConnection.connect(dsn) as conn:
            one = await double.aenqueue(4, key="a", conn=conn)
            with pytest.raises(ExecutionNotFound):
                await one.state()
        more = await double.aenqueue_many([(1,), (2,)])
        assert await one.state() == "waiting"
        drain(app, db)
        assert [await h.result(1) for h in (one, *more)] == [8, 2, 4]
        assert await double.ahandle(one.execution_id).result(0) == 8


async def test_an_engine_or_connection_of_the_other_kind_is_refused_before_anything_is_submitted(
    app, engine, dsn, connect
):
    @app.task()
    def note(n: int) -> None: ...

    async with AsyncEngine(dsn) as other, await psycopg.AsyncConnection.connect(dsn) as conn:
        for wrong in (engine, connect(), dsn):
            with pytest.raises(TypeError, match="AsyncEngine"):
                await note.aenqueue(1, conn=wrong)
            with pytest.raises(TypeError, match="AsyncEngine"):
                await note.aenqueue_many([(1,)], conn=wrong)
            with pytest.raises(TypeError, match="AsyncEngine"):
                note.ahandle("{fp:0}:00000000-0000-0000-0000-000000000000", conn=wrong)
        for wrong in (other, conn, dsn):
            with pytest.raises(TypeError, match="Engine"):
                note.enqueue(1, conn=wrong)
            with pytest.raises(TypeError, match="Engine"):
                note.enqueue_many([(1,)], conn=wrong)
            with pytest.raises(TypeError, match="Engine"):
                app.sync_schedules(wrong)
    assert engine.list_executions() == []


def test_an_app_without_a_database_says_so():
    app = App()

    @app.task()
    def nothing() -> None: ...

    with pytest.raises(NotConnected, match=r"app\.bind"):
        nothing.enqueue()


def test_mistakes_in_a_task_are_told_when_it_is_made_or_first_used(app):
    with pytest.raises(TypeError, match="parentheses"):
        app.task(lambda: None)

    @app.task("twice")
    def first() -> None: ...

    with pytest.raises(ValueError, match="task 'twice' is already registered"):

        @app.task("twice")
        def second() -> None: ...

    @app.task()
    def open_ended(*numbers: int) -> None: ...

    with pytest.raises(TypeError, match="numbers"):
        open_ended.enqueue(1)
    with pytest.raises(TypeError, match="takes 2 arguments, 1 given"):
        app.task()(lambda a, b: None).enqueue(1)


def test_a_task_can_be_called_like_the_function_it_is(app):
    @app.task()
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    assert add(1, 2) == 3
    assert add.__doc__ == "Adds."


def test_an_engine_may_be_given_instead_of_a_connection(dsn, db):
    app = App(lane="x", namespace="shop")

    @app.task()
    def nothing() -> None: ...

    with Engine(dsn) as engine:
        handle = nothing.enqueue(conn=engine)
        assert handle.describe().namespace == "shop"
    drain(app, db)
    assert db.execute("select public_state from ff_exec_core").fetchone()[0] == "completed"


def test_a_result_is_waited_for_through_a_lost_connection(app, engine, db, connect):
    """A restart of the server does not end the task."""

    @app.task()
    def slow() -> int:
        return 7

    handle = slow.enqueue()
    blocker = connect(autocommit=False)
    blocker.execute("lock table ff_exec_core in access exclusive mode")
    waiting = (
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'pyff'"
        " and wait_event_type = 'Lock'"
    )
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(handle.result, 30)
        end = time.monotonic() + 20
        while not db.execute(f"select pg_terminate_backend(pid) from ({waiting}) x").fetchall():
            assert time.monotonic() < end
        blocker.rollback()
        drain(app, db)
        assert found.result() == 7


def test_a_server_that_is_not_there_is_not_waited_for_longer_than_asked(app, engine, dsn, db):
    @app.task()
    def never() -> None: ...

    handle = never.enqueue()
    with Engine(dsn.replace("dbname=", "dbname=gone_")) as gone, pytest.raises(psycopg.OperationalError):
        never.handle(handle.execution_id, gone).result(0.3)
