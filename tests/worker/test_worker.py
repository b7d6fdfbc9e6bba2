"""The worker in the background of a test: what it claims, runs and reports."""

import asyncio
import re
import sysconfig
import threading
import time
import uuid

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from pyff import (
    App,
    AsyncCtx,
    Backoff,
    Ctx,
    Failure,
    Fixed,
    TaskCancelled,
    TaskFailed,
    Worker,
    send_signal,
)
from tests.worker.conftest import nothing, until


def sound(db):
    assert db.execute("select * from ff_check_invariants()").fetchall() == []


def test_plain_functions_and_coroutines_run_side_by_side(app, work, db):
    @app.task()
    def plain(n: int) -> int:
        return n + 1

    @app.task()
    async def coroutine(n: int) -> int:
        await asyncio.sleep(0)
        return n + 2

    work()
    handles = [task.enqueue(n) for n in range(20) for task in (plain, coroutine)]
    assert [h.result(90) for h in handles] == [n + extra for n in range(20) for extra in (1, 2)]
    sound(db)


def test_slots_bound_how_many_run_at_a_time(app, work):
    running, most = set(), []
    lock, three = threading.Lock(), threading.Barrier(3)

    @app.task()
    def plain(n: int) -> None:
        with lock:
            running.add(n)
            most.append(len(running))
        three.wait(90)
        with lock:
            running.discard(n)

    handles = plain.enqueue_many([(n,) for n in range(24)])
    work(slots=3)
    for handle in handles:
        handle.result(90)
    assert max(most) == 3


def test_slots_bound_coroutines_too(app, work):
    running, most, three = set(), [], asyncio.Barrier(3)

    @app.task()
    async def coroutine(n: int) -> None:
        running.add(n)
        most.append(len(running))
        await asyncio.wait_for(three.wait(), 90)
        running.discard(n)

    handles = coroutine.enqueue_many([(n,) for n in range(24)])
    work(slots=3)
    for handle in handles:
        handle.result(90)
    assert max(most) == 3


def test_slots_bound_plain_functions_and_coroutines_together(app, work):
    guard, now, most = threading.Lock(), [], []

    def enters(n: int) -> None:
        with guard:
            now.append(n)
            most.append(len(now))

    @app.task()
    def plain(n: int) -> int:
        enters(n)
        time.sleep(0.002)
        now.remove(n)
        return n

    @app.task()
    async def coroutine(n: int) -> int:
        enters(n)
        await asyncio.sleep(0.002)
        now.remove(n)
        return n

    handles = [task.enqueue(k * 60 + n) for n in range(60) for k, task in enumerate((plain, coroutine))]
    worker = work(slots=4)
    worker._state.ahead = 40  # as if the tasks before had been short
    assert sorted(h.result(90) for h in handles) == list(range(120))
    assert max(most) <= 4


def test_a_burst_is_claimed_and_completed_in_batches(app, work, db):
    @app.task()
    def quick(n: int) -> int:
        return n

    handles = quick.enqueue_many([(n,) for n in range(3000)])
    worker = work()
    until(lambda: worker.health().completed == 3000)
    calls = worker._links["claim"].calls + worker._links["report"].calls
    assert calls < 1000
    assert [handles[n].result(0) for n in (0, 1500, 2999)] == [0, 1500, 2999]
    until(lambda: worker.health().leases == 0)
    sound(db)


def test_lanes_are_served_by_their_weights(app, work):
    order = []

    def make(lane):
        @app.task(lane, lane=lane)
        def note(n: int) -> None:
            order.append(lane)
            time.sleep(0.001)

        return note

    tasks = {lane: make(lane) for lane in ("heavy", "light")}
    for task in tasks.values():
        task.enqueue_many([(n,) for n in range(200)])
    work(lanes={"heavy": 3, "light": 1}, slots=1, batch=1)
    until(lambda: len(order) >= 100)
    share = order[:100].count("heavy")
    assert 65 <= share <= 85


def test_only_a_worker_with_the_needed_capabilities_gets_the_work(app, work):
    @app.task(needs={"gpu"})
    def render() -> str:
        return "picture"

    @app.task()
    def plain() -> None: ...

    handle, other = render.enqueue(), plain.enqueue()
    first = work()
    other.result(90)
    until(lambda: first.health().completed == 1)
    assert handle.state() == "waiting"
    work(capabilities={"gpu", "eu"})
    assert handle.result(90) == "picture"


def test_an_idle_worker_is_notified_of_new_work_before_it_polls(app, work, engine):
    """It polls once an hour: what comes earlier was announced."""

    @app.task()
    def note() -> None: ...

    worker = work(poll_s=3600)
    until(lambda: worker.health().listening)
    for _ in range(5):  # the first one registers the lane
        until(lambda: (worker.health().last_claim_age_s or 0) > 0.5)  # no look is due before the poll
        note.enqueue().result(90)


def test_what_becomes_due_is_not_left_to_the_next_poll(app, work, engine):
    """Retries and sleeps send no notification. The worker that schedules them polls in time."""
    tried = []

    @app.task(retry=Fixed(max=1, delay_ms=150))
    def sleepy(ctx: Ctx) -> int:
        ctx.sleep(150)
        tried.append(1)
        if len(tried) == 1:
            raise OSError
        return len(tried)

    sleepy.enqueue(delay_ms=86_400_000)  # makes the lane known
    work(poll_s=3600)
    assert sleepy.enqueue().result(90) == 2


def test_without_listening_it_polls(app, work):
    @app.task()
    def note() -> int:
        return 1

    worker = work(listen=False, poll_s=0.05)
    assert note.enqueue().result(90) == 1
    assert not worker.health().listening


def test_a_failure_is_retried_by_the_policy(app, work):
    tried = []

    @app.task(retry=Backoff(max=3, base_ms=1, max_ms=1))
    def flaky() -> int:
        tried.append(1)
        if len(tried) < 3:
            raise OSError("again")
        return len(tried)

    @app.task()
    def hopeless() -> None:
        raise RuntimeError("no use")

    work()
    handle = flaky.enqueue()
    with pytest.raises(TaskFailed, match="RuntimeError: no use"):
        hopeless.enqueue().result(90)
    assert handle.result(90) == 3


def test_an_exception_that_ends_programs_ends_only_the_task(app, work):
    @app.task()
    def leaves() -> None:
        raise SystemExit(1)

    @app.task()
    async def leaves_too() -> None:
        raise KeyboardInterrupt

    worker = work()
    for task in (leaves, leaves_too):
        with pytest.raises(TaskFailed):
            task.enqueue().result(90)
    assert worker.health().healthy


def test_a_payload_that_does_not_decode_is_put_off_and_goes_on_after_a_rollback(app, work, engine):
    tokens = []

    @app.task()
    def plain(ctx: Ctx, order: int) -> str:
        return f"{order}: {ctx.wait('approval', on_token=tokens.append).name}"

    @app.task()
    async def coroutine(ctx: AsyncCtx, order: int) -> str:
        return f"{order}: {(await ctx.wait('approval', on_token=tokens.append)).name}"

    first = work()
    handles = [plain.enqueue(1), coroutine.enqueue(2)]
    until(lambda: [h.state() for h in handles] == ["suspended"] * 2)
    first.stop()
    app.tasks.clear()

    @app.task(name="plain")
    def changed(ctx: Ctx, order: dict[str, int]) -> None: ...

    @app.task(name="coroutine")
    async def changed_too(ctx: AsyncCtx, order: dict[str, int]) -> None: ...

    second = work()
    for token in tokens:
        assert send_signal(token, "approve", conn=engine).outcome == "accepted"
    until(lambda: all("put off 2 times" in (h.describe().progress_message or "") for h in handles), 60)
    second.stop()
    for handle in handles:
        assert handle.state() == "delayed"
        assert [step.name for step in engine.read_steps(handle.execution_id)][-1] == "pyff:wait:approval"
        handle.cancel()
        engine.replay_execution(handle.execution_id)
    app.tasks.clear()
    app.tasks.update(plain=plain, coroutine=coroutine)
    work()
    assert [h.result(60) for h in handles] == ["1: approve", "2: approve"]
    assert len(tokens) == 2


def test_a_worker_without_tasks_is_refused(dsn):
    with pytest.raises(Failure, match="no tasks"):
        Worker(App(), dsn).start()


def test_a_slot_that_was_busy_when_the_worker_stopped_ends_too(app, work):
    threads, go = [], threading.Event()

    @app.task()
    def blocks() -> None:
        threads.append(threading.current_thread())
        go.wait(60)

    worker = work()
    blocks.enqueue()
    until(lambda: threads)
    worker.stop(0)
    assert threads[0].is_alive()
    go.set()
    threads[0].join(60)
    assert not threads[0].is_alive()


def test_async_generators_that_a_task_left_open_are_closed_when_the_worker_stops(app, work):
    left, closed = [], threading.Event()

    async def rows():
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.set()

    @app.task()
    async def reads() -> int:
        left.append(rows())
        return await anext(left[0])

    worker = work()
    assert reads.enqueue().result(60) == 1
    assert not closed.is_set()
    worker.stop()
    assert closed.is_set()


def test_a_cancellation_of_a_transaction_costs_no_connection(app, work, db, monkeypatch):
    """The cancellation comes in the very moment in which the pool hands a connection out."""
    contexts, pools = {}, []
    getconn = ConnectionPool.getconn

    def interrupted(pool, *args, **kwargs):
        conn = getconn(pool, *args, **kwargs)
        ctx = contexts.pop(threading.get_ident(), None)
        if ctx is not None:
            pools.append(pool)
            db.execute("select ff_cancel_execution(%s)", [ctx.execution_id])
            until(lambda: ctx.cancelled)
        return conn

    monkeypatch.setattr(ConnectionPool, "getconn", interrupted)
    did = []

    @app.task()
    def pays(ctx: Ctx) -> None:
        ctx.check()
        contexts[threading.get_ident()] = ctx
        ctx.transaction("pay", did.append)

    worker = work(slots=1)
    until(lambda: worker.health().listening)
    for n in range(1, 4):
        pays.enqueue()
        until(lambda: worker.health().lost == n)  # noqa: B023
    assert did == []
    for pool in pools:
        until(lambda: pool.get_stats()["pool_available"] == pool.get_stats()["pool_size"])  # noqa: B023


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failure_names_the_place_in_the_users_code(app, work, is_async):
    @app.task()
    def plain(ctx: Ctx) -> None:
        ctx.emit("x", type="")  # refused by the engine

    @app.task()
    async def coroutine(ctx: AsyncCtx) -> None:
        await ctx.emit("x", type="")

    work()
    with pytest.raises(TaskFailed) as failed:
        (coroutine if is_async else plain).enqueue().result(60)
    name = "coroutine" if is_async else "plain"
    assert re.search(rf"\(test_worker\.py:\d+ in {name}\)$", failed.value.reason)


def test_it_does_so_for_tasks_that_are_installed_among_the_libraries(app, work):
    source = "import json\n\n\ndef parse(text: str) -> None:\n    json.loads(text)\n"
    module = {}
    exec(compile(source, f"{sysconfig.get_path('purelib')}/shop/tasks.py", "exec"), module)  # noqa: S102
    parse = app.task()(module["parse"])
    work()
    with pytest.raises(TaskFailed) as failed:
        parse.enqueue("{").result(90)
    assert failed.value.reason.endswith("(tasks.py:5 in parse)")


def test_a_task_that_this_worker_does_not_know_is_left_to_others(app, work, engine, db):
    @app.task()
    def known() -> int:
        return 1

    stranger = engine.create_execution("default", execution_kind="stranger")
    work()
    assert known.enqueue().result(90) == 1
    until(lambda: engine.read_execution_state(stranger.execution_id).public_state == "delayed")
    row = engine.describe_execution(stranger.execution_id)
    assert (row.retry_count, row.total_attempt_count) == (0, 1)


def test_leases_are_renewed_for_as_long_as_a_task_runs(app, work, engine, db):
    """Two tasks run for longer than their first lease lasts, one of them in the way of the event loop."""
    ttl_ms = 5000

    def outlive(execution_id: str) -> str:
        first = engine.describe_execution(execution_id)
        end = time.monotonic() + 90
        while engine.now_ms() < first.lease_expires_at_ms + 500 and time.monotonic() < end:
            time.sleep(0.05)
        return "done"

    @app.task()
    def slow(ctx: Ctx) -> str:
        return outlive(ctx.execution_id)

    @app.task()
    async def blocks_the_loop(ctx: AsyncCtx) -> str:
        return outlive(ctx.execution_id)

    work(lease_ttl_ms=ttl_ms)
    handles = [slow.enqueue(), blocks_the_loop.enqueue()]
    assert [h.result(90) for h in handles] == ["done", "done"]
    assert [h.describe().total_attempt_count for h in handles] == [1, 1]


def test_a_cancellation_reaches_the_task_as_an_exception(app, work, db):
    told, begun = [], threading.Event()

    @app.task()
    def spins() -> None:
        try:
            begun.set()
            while True:
                time.sleep(0.001)
        except TaskCancelled as error:
            told.append((error.reason, str(error)))
            raise

    worker = work(lease_ttl_ms=60_000)
    handle = spins.enqueue()
    begun.wait(90)
    until(lambda: worker.health().listening)
    handle.cancel("enough")
    until(lambda: told)
    assert told == [("execution_not_active", "execution_not_active")]
    until(lambda: worker.health().leases == 0)
    assert handle.state() == "cancelled"
    assert worker.health().lost == 1
    sound(db)


def test_a_cancellation_reaches_a_coroutine_as_cancelled_error(app, work):
    told, begun = [], threading.Event()

    @app.task()
    async def sleeps(ctx: AsyncCtx) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            told.append(ctx.cancelled)
            raise

    worker = work(lease_ttl_ms=60_000)
    handle = sleeps.enqueue()
    begun.wait(90)
    until(lambda: worker.health().listening)
    handle.cancel("enough")
    until(lambda: told == [True])
    until(lambda: worker.health().leases == 0)


def test_a_cancelled_task_that_returns_a_result_all_the_same_is_not_believed(app, work, engine):
    begun, go = threading.Event(), threading.Event()

    @app.task()
    def stubborn(ctx: Ctx) -> str:
        with ctx.shield():
            begun.set()
            go.wait(90)
            return "result"

    worker = work(lease_ttl_ms=600)
    handle = stubborn.enqueue()
    begun.wait(90)
    handle.cancel()
    go.set()
    until(lambda: worker.health().lost == 1)
    assert handle.state() == "cancelled"
    assert engine.get_execution_result(handle.execution_id).result is None


def test_an_interrupt_does_not_hit_the_next_task_of_the_slot(app, work):
    begun = threading.Event()

    @app.task()
    def victim() -> None:
        begun.set()
        while True:
            time.sleep(0.001)

    @app.task()
    def next_one(n: int) -> int:
        return sum(range(2000)) + n

    worker = work(slots=1, lease_ttl_ms=60_000)
    for _ in range(5):
        begun.clear()
        handle = victim.enqueue()
        begun.wait(90)
        until(lambda: worker.health().listening)
        after = next_one.enqueue_many([(n,) for n in range(20)])
        handle.cancel()
        assert [h.result(90) for h in after] == [1999000 + n for n in range(20)]


def test_a_task_whose_lease_cannot_be_renewed_is_stopped_by_the_worker_itself(app, work, db):
    """The database rejects every renewal and no answer arrives: only the local deadline is left."""
    told, begun = [], threading.Event()

    @app.task()
    def spins() -> None:
        begun.set()
        try:
            while True:
                time.sleep(0.001)
        except TaskCancelled as error:
            told.append(str(error))
            raise

    worker = work(lease_ttl_ms=900, listen=False)
    renew_call = worker._links["renew"].call
    worker._links["renew"].call = lambda sql, arguments: time.sleep(0.2) or []
    spins.enqueue()
    begun.wait(90)
    until(lambda: told)
    assert len(told) == 1
    worker._links["renew"].call = renew_call
    until(lambda: worker.health().lost == 1)


def test_an_attempt_that_takes_too_long_is_stopped_and_retried(app, work):
    tried = []

    @app.task(timeout_ms=300, retry=Fixed(max=100, delay_ms=0))  # a later attempt may take too long, too
    def hangs() -> str:
        tried.append(1)
        while len(tried) == 1:
            time.sleep(0.001)
        return "second"

    work()
    assert hangs.enqueue().result(90) == "second"


def test_stopping_lets_running_tasks_finish_and_gives_the_rest_back(app, work, db):
    begun = threading.Event()

    @app.task()
    def slow(n: int) -> int:
        begun.set()
        time.sleep(0.3)
        return n

    handles = slow.enqueue_many([(n,) for n in range(40)])
    worker = work(slots=2)
    worker._state.ahead = 20  # as if the tasks before had been short
    begun.wait(90)
    worker.stop()
    states = [h.state() for h in handles]
    assert states.count("completed") >= 2
    assert {s for s in states if s != "completed"} <= {"waiting", "resumable"}
    assert worker.health().state == "stopped"
    assert worker.health().leases == 0
    assert db.execute("select count(*) from ff_worker_registry").fetchone()[0] == 0
    other = work(slots=16)
    assert [h.result(90) for h in handles] == list(range(40))
    until(lambda: other.health().leases == 0)
    assert db.execute("select max(lease_reclaim_count), max(retry_count) from ff_exec_core").fetchone() == (
        0,
        0,
    )
    sound(db)


def test_a_task_that_does_not_end_in_time_is_interrupted_and_given_back(app, work):
    begun, told = threading.Event(), []

    @app.task()
    def spins() -> str:
        begun.set()
        try:
            while len(told) == 0:
                time.sleep(0.001)
        except TaskCancelled as error:
            told.append(str(error))
            raise
        return "finished elsewhere"

    handle = spins.enqueue()
    worker = work()
    begun.wait(90)
    worker.stop(0.05)
    until(lambda: told)
    assert len(told) == 1
    assert handle.state() == "resumable"
    work()
    assert handle.result(90) == "finished elsewhere"
    assert handle.describe().total_attempt_count == 1


def test_a_task_that_cannot_be_interrupted_is_given_back_and_its_late_result_is_ignored(app, work, engine):
    begun, go = threading.Event(), threading.Event()

    @app.task()
    def stuck(ctx: Ctx) -> str:
        if ctx.resumed:
            return "other"
        with ctx.shield():
            begun.set()
            go.wait(90)
        return "late"

    handle = stuck.enqueue()
    worker = work()
    begun.wait(90)
    worker.stop(0)
    assert handle.state() == "resumable"
    go.set()
    work()
    assert handle.result(90) == "other"


def test_what_was_claimed_ahead_is_left_to_others_when_the_slots_are_at_something_long(app, work, db):
    go = threading.Event()

    @app.task()
    def quick(n: int) -> int:
        return n

    @app.task(priority=9)
    def long(n: int) -> None:
        go.wait(90)

    first = work(slots=2)
    for handle in quick.enqueue_many([(n,) for n in range(200)]):
        handle.result(90)
    until(lambda: first.health().completed == 200)
    long.enqueue_many([(n,) for n in range(2)])
    until(lambda: first.health().running == 2)
    first._state.ahead, first._state.low = 100, 50  # what short tasks lead to
    more = quick.enqueue_many([(n,) for n in range(50)])
    until(lambda: first.health().released == 50)
    work(slots=2)
    assert [h.result(90) for h in more] == list(range(50))
    go.set()
    assert db.execute("select max(total_attempt_count), max(retry_count) from ff_exec_core").fetchone() == (
        1,
        0,
    )
    sound(db)


def test_a_task_that_cannot_be_called_is_told_at_the_start(app, dsn):
    @app.task()
    def open_ended(*numbers: int) -> None: ...

    with pytest.raises(TypeError, match="numbers"):
        Worker(app, dsn).start()


def test_a_worker_is_registered_while_it_works(app, work, db):
    worker = work(worker_id="box", capabilities={"gpu"})
    until(lambda: db.execute("select count(*) from ff_worker_registry").fetchone()[0] == 1)
    row = db.execute(
        "select worker_id, worker_instance_id, lanes, capabilities from ff_worker_registry"
    ).fetchone()
    assert row == ("box", worker.instance_id, ["default"], ["gpu"])
    assert uuid.UUID(worker.instance_id.removeprefix("session-"))


def test_waits_and_children_go_through_real_slots(app, work, db, engine):
    tokens = []

    @app.task()
    def child(n: int) -> int:
        return n

    @app.task()
    async def parent(ctx: AsyncCtx) -> int:
        answer = await ctx.wait("ok", on_token=tokens.append)
        kids = [await ctx.spawn(child, n) for n in range(3)]
        await ctx.sleep(10)
        return sum(await ctx.gather(*kids)) + len(answer.name)

    worker = work(slots=1)
    handle = parent.enqueue()
    until(lambda: tokens)
    until(lambda: handle.state() == "suspended")
    send_signal(tokens[0], "go", conn=engine)
    assert handle.result(90) == 5
    assert worker.health().paused >= 2
    until(lambda: worker.health().leases == 0)
    sound(db)


def test_health_tells_what_is_going_on(app, work, dsn):
    begun, go = threading.Event(), threading.Event()

    @app.task()
    def waits() -> None:
        begun.set()
        go.wait(90)

    assert Worker(app, dsn).health().state == "new"
    worker = work()
    waits.enqueue()
    begun.wait(90)
    until(lambda: worker.health().last_renewal_age_s is not None)
    health = worker.health()
    assert health.healthy
    assert (health.state, health.running, health.leases, health.claimed) == ("running", 1, 1, 1)
    assert health.last_claim_age_s < 5
    go.set()
    until(lambda: worker.health().completed == 1)


def test_a_worker_that_cannot_claim_is_not_healthy(app, work):
    worker = work()
    until(lambda: worker.health().healthy)
    worker._state.draining.set()  # ends the thread that claims
    worker._state.room.set()
    worker._background["claim"].join()
    worker._state.last_claim -= 60
    assert not worker.health().healthy


def test_connections_that_break_are_made_again(app, work, db):
    @app.task()
    def note(n: int) -> int:
        time.sleep(0.01)
        return n

    worker = work(lease_ttl_ms=3000)  # a claim whose answer is lost is taken over when its lease is over
    handles = note.enqueue_many([(n,) for n in range(300)])
    for _ in range(3):
        time.sleep(0.1)
        db.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = 'pyff-worker'"
        )
    assert [h.result(90) for h in handles] == list(range(300))
    until(lambda: worker.health().healthy and worker.health().listening)
    sound(db)


def test_a_task_does_not_notice_that_the_database_hung_up(app, work, db):
    """No retries: each of them would fail if a lost connection were a failure of the task."""
    db.execute("create table booking (n int)")

    @app.task()
    def plain(ctx: Ctx, n: int) -> int:
        total = sum(ctx.step(f"step {i}", abs, -i) for i in range(15))
        ctx.transaction("book", book, n)
        ctx.progress(100)
        return total

    def book(conn: psycopg.Connection, n: int) -> None:
        conn.execute("insert into booking values (%s)", [n])

    @app.task()
    async def coroutine(ctx: AsyncCtx, n: int) -> int:
        return sum([await ctx.step(f"step {i}", abs, -i) for i in range(15)])

    work(lease_ttl_ms=120_000)
    handles = [task.enqueue(n) for n in range(15) for task in (plain, coroutine)]
    end = time.monotonic() + 90
    while any(h.state() != "completed" for h in handles) and time.monotonic() < end:
        db.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and application_name = 'pyff' and random() < 0.5"
            "   and query not like '%ff_read_execution_state%'"
        )
        time.sleep(0.05)
    assert [h.result(0) for h in handles] == [105] * 30
    assert db.execute("select max(retry_count), max(total_attempt_count) from ff_exec_core").fetchone() == (
        0,
        1,
    )
    assert db.execute("select count(*), count(distinct n) from booking").fetchone() == (15, 15)
    sound(db)


def test_a_call_that_gets_no_answer_is_given_up(app, work, connect):
    """A locked table stands for an unreachable server: the worker aborts the call and reconnects."""

    @app.task()
    def note() -> int:
        return 1

    worker = work(lease_ttl_ms=3000)  # a claim whose answer is lost is taken over when its lease is over
    assert note.enqueue().result(90) == 1
    blocker = connect(autocommit=False)
    handle = note.enqueue()
    aborted = worker._links["claim"].connected
    blocker.execute("lock table ff_lane_registry in access exclusive mode")
    worker._watch._call_timeout_s = 0.3
    worker._notify_all_lanes()
    until(lambda: worker._claimer._pauses.failures > 0)
    worker._watch._call_timeout_s = 30.0
    blocker.rollback()
    assert handle.result(90) == 1
    assert aborted


def test_wrong_options_are_refused(app, dsn):
    app.task()(nothing)
    for options in ({"slots": 0}, {"batch": 0}, {"lanes": {}}, {"lanes": {"a": 0}}):
        with pytest.raises(ValueError, match=next(iter(options))):
            Worker(app, dsn, **options)
    with pytest.raises(TypeError):
        Worker(app, dsn, lanes="mail")
    worker = Worker(app, dsn)
    worker.start()
    with pytest.raises(RuntimeError):
        worker.start()
    worker.stop(0)


def test_an_observer_sees_every_run(app, work):
    seen = []

    class Notes:
        def claimed(self, run) -> None:
            seen.append(("claimed", run.kind))

        def finished(self, run) -> None:
            seen.append((run.outcome, run.kind))

    @app.task()
    def good() -> None: ...

    @app.task()
    def bad() -> None:
        raise OSError

    work(observers=[Notes()])
    good.enqueue().result(90)
    with pytest.raises(TaskFailed):
        bad.enqueue().result(90)
    until(lambda: len(seen) == 4)
    assert sorted(seen) == [("claimed", "bad"), ("claimed", "good"), ("complete", "good"), ("fail", "bad")]
