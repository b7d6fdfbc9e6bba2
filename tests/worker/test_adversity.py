"""Tasks that misbehave, and a database that does: the worker stays, and says what happened."""

import asyncio
import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pyff import AsyncCtx, Ctx, EngineError, Fail, Fixed, TaskCancelled, TaskFailed, Worker, send_signal
from pyff.app.run import Run, Shield
from pyff.failure import Failure
from pyff.worker import finisher
from pyff.worker.claimer import Claimer, Lanes
from pyff.worker.loop import Loop
from pyff.worker.state import State
from tests.pgbouncer import pooled
from tests.sql import one
from tests.worker.conftest import nothing, until

WAITING = (
    "select pid from pg_stat_activity where datname = current_database() and application_name = 'pyff'"
    " and wait_event_type = 'Lock'"
)


def sound(db):
    assert db.execute("select * from ff_check_invariants()").fetchall() == []


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("caf\udce9.txt"), "caf"),
        (ValueError("a\x00b"), "ab"),
        (MuteError(), "MuteError"),
        (type("E" * 400, (Exception,), {})("long name"), "long name"),
        (ValueError("x" * 10_000_000), "xxx"),
        (Fail("reason", category=""), "reason"),
        (Fail("reason\udcff\x00", category="odd\x00\udcff"), "reason"),
        (Fail(None, category=7), "None"),  # type: ignore[arg-type]
        (Fail(MuteError(), category=MuteError()), "Fail"),  # type: ignore[arg-type]
        (Fail(""), ""),
    ],
    ids=[
        "surrogates",
        "nul",
        "no text",
        "long name",
        "long text",
        "no category",
        "odd category",
        "no reason",
        "no text in the reason",
        "empty reason",
    ],
)
def test_whatever_a_task_raises_it_ends_failed_and_the_worker_goes_on(app, work, error, said, monkeypatch):
    monkeypatch.setattr(
        logging.getLogger("pyff.worker"), "disabled", True
    )  # pytest cannot pass such texts on

    @app.task()
    def raises() -> None:
        raise error

    @app.task()
    def fine() -> str:
        return "fine"

    work()
    failed = raises.enqueue()
    with pytest.raises(TaskFailed) as caught:
        failed.result(90)
    assert said in caught.value.reason
    assert fine.enqueue().result(90) == "fine"


def test_a_result_that_cannot_be_stored_fails_the_task_for_good(app, work, monkeypatch):
    monkeypatch.setattr(finisher, "MAX_RESULT_BYTES", 1000)
    monkeypatch.setattr(finisher, "MAX_BATCH_BYTES", 500)

    @app.task(retry=Fixed(max=3, delay_ms=0))
    def large() -> bytes:
        return bytes(2000)

    work()
    handle = large.enqueue()
    with pytest.raises(TaskFailed, match="2000 bytes"):
        handle.result(90)
    assert handle.describe().total_attempt_count == 1


def test_a_result_above_the_limit_of_the_database_fails_the_task_for_good(app, work, db):
    one(db, "ff_set_setting", name="max_execution_bytes", value="1024")

    @app.task(retry=Fixed(max=3, delay_ms=0))
    def large(n: int) -> bytes:
        return bytes(1000 + n)

    work()
    fine, refused = large.enqueue_many([(0,), (1000,)])
    with pytest.raises(TaskFailed, match="2000 bytes"):
        refused.result(20)
    assert fine.result(20) == bytes(1000)
    assert refused.describe().total_attempt_count == 1
    assert refused.describe().failure_category == "invalid_result"
    sound(db)


def test_large_results_go_in_several_calls(app, work, monkeypatch, db):
    monkeypatch.setattr(finisher, "MAX_BATCH_BYTES", 100_000)
    sizes = []
    call = finisher.Finisher._complete

    def noting(self, batch, encoding):
        sizes.append(sum(len(run.result or b"") for run in batch))
        call(self, batch, encoding)

    monkeypatch.setattr(finisher.Finisher, "_complete", noting)

    @app.task()
    def large(n: int) -> bytes:
        return bytes(30_000)

    handles = large.enqueue_many([(n,) for n in range(60)])
    work()
    assert [len(h.result(90)) for h in handles] == [30_000] * 60
    assert max(sizes) <= 100_000
    assert sum(sizes) == 60 * 30_000
    sound(db)


def test_steps_side_by_side_are_not_run_again_either(app, work):
    """The first one reads what is recorded, and the others wait for that."""
    ran = []

    async def do(name: str) -> str:
        ran.append(name)
        return name

    @app.task(retry=Fixed(max=1, delay_ms=0))
    async def coroutine(ctx: AsyncCtx) -> list[str]:
        found = await asyncio.gather(*(ctx.step(f"step {n}", do, f"async {n}") for n in range(5)))
        if ctx.attempt == 0:
            raise OSError
        return list(found)

    def do_plain(name: str) -> str:
        ran.append(name)
        return name

    @app.task(retry=Fixed(max=1, delay_ms=0))
    def plain(ctx: Ctx) -> list[str]:
        with ThreadPoolExecutor(5) as pool:
            began = [pool.submit(ctx.step, f"step {n}", do_plain, f"plain {n}") for n in range(5)]
            found = [each.result() for each in began]
        if ctx.attempt == 0:
            raise OSError
        return found

    work()
    handles = [coroutine.enqueue(), plain.enqueue()]
    assert [h.result(90) for h in handles] == [[f"{k} {n}" for n in range(5)] for k in ("async", "plain")]
    assert sorted(ran) == sorted(f"{k} {n}" for k in ("async", "plain") for n in range(5))


def test_a_call_of_the_database_is_not_interrupted_half_way(app, work, connect):
    """The exception comes when the call has returned: a connection of the pool must not be lost with it."""
    told, go, begun = [], threading.Event(), threading.Event()

    @app.task()
    def reports(ctx: Ctx) -> None:
        begun.set()
        go.wait(90)
        try:
            ctx.progress(5)
            told.append("went on")
        except TaskCancelled as error:
            told.append(str(error))
            raise

    worker = work(lease_ttl_ms=60_000)
    handle = reports.enqueue()
    begun.wait(90)
    blocker, watcher = connect(autocommit=False), connect()
    blocker.execute("select from ff_exec_core for update")
    go.set()
    until(lambda: len(watcher.execute(WAITING).fetchall()) == 1)
    (run,) = worker._state.runs.values()
    run.lose("lease_revoked")
    time.sleep(0.3)
    assert told == []
    blocker.rollback()
    until(lambda: told)
    assert told == ["lease_revoked"]
    assert worker._engine._pool.get_stats().get("returns_bad", 0) == 0
    until(lambda: worker.health().leases == 0)
    assert handle.state() == "active"  # the test revoked it without an event


def test_a_renewal_that_is_refused_because_the_task_has_just_paused_means_nothing(app, work, engine, caplog):
    """The wait has begun in the database, and the task has not received the answer yet."""
    told, met = [], []

    @app.task()
    def waits(ctx: Ctx, how: str) -> str:
        try:
            if how == "wait":
                return ctx.wait("answer", on_token=told.append).name
            ctx.sleep(1)
        except TaskCancelled as error:
            told.append(error)
            raise
        return "slept"

    worker = work(lease_ttl_ms=60_000)
    renewals = worker._links["renew"]

    def late(verb):
        def call(*args, **kwargs):
            answer = verb(*args, **kwargs)
            for _ in range(2):  # the first may have begun before
                worker._renewer.renew_now()
                until(lambda wanted=renewals.calls + 1: renewals.calls >= wanted)
            met.append(verb.__name__)
            return answer

        return call

    worker._engine.try_suspend = late(worker._engine.try_suspend)
    worker._engine.delay = late(worker._engine.delay)
    waiting, sleeping = waits.enqueue("wait"), waits.enqueue("sleep")
    assert sleeping.result(90) == "slept"
    until(lambda: waiting.state() == "suspended")
    until(lambda: worker.health().paused == 2)
    send_signal(told[0], "yes", conn=engine)
    assert waiting.result(90) == "yes"
    assert sorted(met) == ["delay", "try_suspend"]
    assert len(told) == 1
    assert worker.health().lost == 0


def test_a_database_that_hangs_up_in_the_middle_is_no_failure_of_the_task(app, work, db, connect):
    """Calls that would count twice are not repeated: the task is done again instead, as the same attempt."""
    begun, go = threading.Semaphore(0), threading.Event()
    runs = []

    @app.task()
    def emits(ctx: Ctx) -> int:
        runs.append("plain")
        if runs.count("plain") == 1:
            begun.release()
            go.wait(90)
        ctx.emit("x")
        return 1

    @app.task()
    async def emits_too(ctx: AsyncCtx) -> int:
        runs.append("async")
        if runs.count("async") == 1:
            begun.release()
            await asyncio.to_thread(go.wait, 90)
        await ctx.emit("x")
        return 2

    worker = work(lease_ttl_ms=60_000)
    handles = [emits.enqueue(), emits_too.enqueue()]
    begun.acquire(timeout=90), begun.acquire(timeout=90)
    blocker = connect(autocommit=False)
    blocker.execute("select from ff_exec_core for update")
    go.set()
    until(lambda: len(db.execute(WAITING).fetchall()) == 2)
    db.execute(f"select pg_terminate_backend(pid) from ({WAITING}) x")
    until(lambda: worker.health().released == 0 and worker.health().running == 0)
    blocker.rollback()
    assert [h.result(90) for h in handles] == [1, 2]
    assert sorted(runs) == ["async", "async", "plain", "plain"]
    assert [h.describe().total_attempt_count for h in handles] == [1, 1]


def test_an_interrupt_and_a_shield_do_not_meet_half_way():
    run = Run("h", "fresh", "{fp:0}:x", "t", None, 0)
    did, recalled, waiting = [], [], []

    def shielded() -> None:
        try:
            with Shield(run):
                did.append("inside")
        except TaskCancelled as error:
            did.append(str(error))

    def interrupt(_: Run) -> None:
        thread = threading.Thread(target=shielded)
        thread.start()
        thread.join(0.2)  # it cannot end yet
        waiting.append(thread)

    run.interrupt, run.clear_interrupt = interrupt, lambda: recalled.append(True)
    run.lose("lease_revoked")
    run.lose("lease_expired")
    waiting[0].join(90)
    assert len(waiting) == 1  # told once
    assert (did, recalled, run.shields) == (["lease_revoked"], [True], 0)


def test_a_step_whose_result_could_not_be_read_again_is_not_recorded(app, work, engine):
    def wrong() -> int:
        return "seven"  # type: ignore[return-value]

    @app.task()
    def uses(ctx: Ctx) -> int:
        return ctx.step("wrong", wrong)

    work()
    handle = uses.enqueue()
    with pytest.raises(TaskFailed, match="expected int, got str"):
        handle.result(90)
    assert engine.read_steps(handle.execution_id) == []


def test_a_step_with_too_much_to_record_fails_the_task_for_good(app, work, engine):
    ran = []

    def much() -> str:
        ran.append(1)
        return "x" * 1_100_000

    @app.task(retry=Fixed(max=3, delay_ms=0))
    def uses(ctx: Ctx) -> None:
        ctx.step("much", much)

    work()
    handle = uses.enqueue()
    with pytest.raises(TaskFailed, match="1100002 bytes, 1048576 are allowed"):
        handle.result(90)
    assert ran == [1]


def test_large_payloads_and_results_go_through(app, work):
    @app.task()
    def echo(data: bytes) -> bytes:
        return data[::-1]

    work()
    data = os.urandom(3_000_000)
    handles = echo.enqueue_many([(data,) for _ in range(3)])
    assert all(h.result(90) == data[::-1] for h in handles)


def test_a_worker_whose_part_has_died_says_so(app, dsn, monkeypatch):
    """A worker that does not claim any more must not look like one that was asked to stop."""
    app.task()(nothing)
    monkeypatch.setattr(Claimer, "_wanted", lambda self: 1 // 0)
    worker = Worker(app, dsn, lanes=["default"])
    with pytest.raises(Failure, match="claim"):
        worker.run()
    assert worker.health().state == "stopped"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lease_ttl_ms": 0}, "p_lease_ttl_ms"),
        ({"worker_id": "x" * 1000}, "p_worker_id"),
        ({"capabilities": ["a,b", ""]}, "apabilit"),
        ({"lanes": ["default", "no lane!\x01"]}, "lane"),
    ],
)
def test_what_every_claim_would_be_refused_for_is_told_at_the_start(app, dsn, options, said):
    app.task()(nothing)
    worker = Worker(app, dsn, **{"lanes": ["default"], **options})
    with pytest.raises(EngineError, match=said):
        worker.start()
    assert worker.health().state == "new"


def test_a_worker_without_the_right_to_claim_is_told_at_the_start(app, dsn, db):
    app.task()(nothing)
    db.execute("drop role if exists bystander")
    db.execute("create role bystander login in role ff_reader")
    try:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="ff_claim_many"):
            Worker(app, make_conninfo(dsn, user="bystander"), lanes=["default"]).start()
    finally:
        db.execute("drop role bystander")


def test_a_worker_in_a_hurry_does_not_wait_for_a_server_that_does_not_answer(app, work, connect):
    worker = work()
    until(lambda: worker.health().healthy)
    blocker = connect(autocommit=False)
    blocker.execute("lock table ff_worker_registry in access exclusive mode")
    worker.shutdown(), worker.shutdown()
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 15
    assert worker.health().state == "stopped"


def test_a_fork_of_a_worker_is_not_the_worker(app, work):
    """What the child of a task does at its end must not be said on the connections of the parent."""

    @app.task()
    def note() -> int:
        return 1

    worker = work()
    assert note.enqueue().result(90) == 1
    pid = os.fork()
    if not pid:
        worker.stop()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert note.enqueue().result(90) == 1
    assert worker.health().state == "running"


def test_large_work_is_not_claimed_far_ahead():
    def ran(size: int) -> Run:
        run = Run("h", "fresh", "{fp:0}:x", "t", bytes(size), 0)
        run.started, run.busy_s = 1.0, 0.0001
        return run

    state = State(16, 500)
    state.adjust_ahead([ran(100) for _ in range(20)])
    assert state.ahead == 500
    state.adjust_ahead([ran(1_000_000) for _ in range(20)])
    assert state.ahead == 32


def test_everything_works_at_the_strictest_isolation_too(app, dsn, db):
    """Others are in the way more often then; no task fails of it, although none is tried again."""

    @app.task()
    def child(n: int) -> int:
        return n

    @app.task()
    def parent(ctx: Ctx, upto: int) -> int:
        first = ctx.step("first", abs, -1)
        return first + sum(ctx.gather(*[ctx.spawn(child, n) for n in range(upto)]))

    strict = make_conninfo(dsn, options="-c default_transaction_isolation=serializable")
    handles = parent.enqueue_many([(4,) for _ in range(6)])
    with Worker(app, strict, slots=6, poll_s=0.2):
        assert [h.result(90) for h in handles] == [7] * 6
    assert db.execute("select max(total_attempt_count) from ff_exec_core").fetchone() == (1,)
    sound(db)


def test_a_coroutine_that_is_cancelled_before_its_first_step_is_reported_too(app, dsn):
    """asyncio would end it without ever entering it, and its slot would stay taken for good."""

    @app.task()
    async def never() -> None: ...

    state, busy = State(2, 10), threading.Event()
    loop = Loop(state, dsn, 2, prepare=True)
    run = Run("h", "fresh", "{fp:0}:x", "never", None, 0)
    run.task = never
    try:
        loop._started().call_soon_threadsafe(busy.wait, 90)
        loop.put([run])
        run.lost = "lease_revoked"
        loop.interrupt(run)
        busy.set()
        until(lambda: state.finished)
        assert run.outcome == "lost"
        assert not loop._running
    finally:
        loop.close()


def test_a_shield_after_a_cancellation_says_so_again(app, work):
    told, begun = [], threading.Event()

    @app.task()
    def tidies(ctx: Ctx) -> None:
        begun.set()
        try:
            while True:
                time.sleep(0.001)
        except TaskCancelled:
            try:
                with ctx.shield():
                    told.append("inside")
            except BaseException as error:
                told.append(type(error))
            raise

    class Notes:
        def claimed(self, run) -> None: ...

        def finished(self, run) -> None:
            told.append(type(run.error))

    worker = work(lease_ttl_ms=60_000, observers=[Notes()])
    handle = tidies.enqueue()
    begun.wait(90)
    until(lambda: worker.health().listening)
    handle.cancel()
    until(lambda: worker.health().leases == 0)
    until(lambda: len(told) == 2)
    assert told == [TaskCancelled, TaskCancelled]


def test_a_coroutine_beside_the_task_that_ends_programs_ends_no_other_task(app, work):
    """asyncio lets SystemExit from any source leave its loop."""
    begun, ended = threading.Event(), []

    async def leaves() -> None:
        raise SystemExit(1)

    @app.task()
    async def careless() -> str:
        await asyncio.to_thread(begun.wait, 90)
        beside = asyncio.ensure_future(leaves())
        await asyncio.wait([beside])
        ended.append("careless")
        return repr(beside.exception())

    @app.task()
    async def stops() -> str:
        await asyncio.to_thread(begun.wait, 90)
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.05)
        ended.append("stops")
        return "went on"

    @app.task()
    async def bystander() -> str:
        begun.set()
        while len(ended) < 2:
            await asyncio.sleep(0.01)
        return "not hurt"

    worker = work()
    handles = [bystander.enqueue(), careless.enqueue(), stops.enqueue()]
    assert [h.result(90) for h in handles] == ["not hurt", "SystemExit(1)", "went on"]
    assert bystander.enqueue().result(90) == "not hurt"
    assert worker.health().healthy


def locked(handle) -> str:
    return (
        f"select from ff_exec_core where execution_id = '{handle.execution_id.rpartition(':')[2]}' for update"
    )


def test_a_locked_execution_does_not_delay_the_renewal_of_other_leases(app, work, connect):
    """A transaction that changed it and stays open: only that one lease cannot be renewed."""
    begun, go, told = threading.Semaphore(0), threading.Event(), []

    @app.task()
    def long(n: int) -> int:
        begun.release()
        try:
            while not go.is_set():
                time.sleep(0.005)
        except TaskCancelled:
            told.append(n)
            raise
        return n

    worker = work(lease_ttl_ms=6000)
    handles = long.enqueue_many([(n,) for n in range(8)])
    for _ in handles:
        begun.acquire(timeout=90)
    blocker = connect(autocommit=False)
    blocker.execute(locked(handles[3]))
    until(lambda: told)
    began = worker._state.counters.renewed
    worker._renewer.renew_now()
    until(lambda: worker._state.counters.renewed >= began + 7)
    assert told == [3]
    go.set()
    assert [h.result(90) for h in handles if h is not handles[3]] == [0, 1, 2, 4, 5, 6, 7]
    blocker.rollback()
    assert handles[3].result(90) == 3


@pytest.mark.parametrize("ends", ["complete", "fail", "release"])
def test_a_locked_execution_does_not_delay_other_results(app, work, connect, ends):
    begun, go = threading.Event(), threading.Event()

    @app.task()
    def held(ctx: Ctx) -> str:
        if ends == "release" and ctx.resumed:
            return "again"
        begun.set()
        go.wait(90)
        if ends == "fail":
            raise OSError("no luck")
        if ends == "release":
            ctx._run.lose("worker_stopping")
            ctx.check()
        return "done"

    @app.task()
    def quick(n: int) -> int:
        return n

    worker = work(lease_ttl_ms=20_000)
    handle = held.enqueue()
    begun.wait(90)
    blocker = connect(autocommit=False)
    blocker.execute(locked(handle))
    go.set()
    until(lambda: worker.health().unacknowledged == 1)
    assert [h.result(90) for h in quick.enqueue_many([(n,) for n in range(5)])] == [0, 1, 2, 3, 4]
    until(lambda: worker.health().unacknowledged == 1)  # a result can be read before the worker counts it
    blocker.rollback()
    if ends == "fail":
        with pytest.raises(TaskFailed, match="no luck"):
            handle.result(90)
    else:
        assert handle.result(90) == ("again" if ends == "release" else "done")
    until(lambda: worker.health().leases == 0)
    assert handle.describe().total_attempt_count == 1


REPLACED = """
    create schema if not exists before;
    alter function {name} set schema before;
    create sequence {name}_calls;
    create function {name}({arguments}) returns table ({columns}) language plpgsql as $$
    begin
        if nextval('{name}_calls') <= 2 then
            raise exception 'cache lookup failed for function 4711' using errcode = 'XX000';
        end if;
        return query select {read} from before.{name}({given}) x;
    end $$;
"""


def test_an_upgrade_that_replaces_a_function_under_a_call_costs_no_result(app, work, db):
    """PostgreSQL has no lock on a function that is about to run."""

    @app.task()
    def note(n: int) -> int:
        return n

    worker = work()
    assert note.enqueue(1).result(90) == 1
    db.execute(
        REPLACED.format(
            name="ff_complete_many",
            arguments="p_handles text[], p_results bytea[] default null, p_result_encoding text default null",
            columns="ordinal int, outcome text, error_kind text",
            read="x.ordinal, x.outcome, x.error_kind",
            given="p_handles, p_results, p_result_encoding",
        )
    )
    db.execute(
        REPLACED.format(
            name="ff_delay",
            arguments="p_handle text, p_delay_until_ms bigint default null, p_delay_ms bigint default null",
            columns="outcome text",
            read="x.outcome",
            given="p_handle, p_delay_until_ms, p_delay_ms",
        )
    )
    assert [h.result(90) for h in note.enqueue_many([(n,) for n in range(20)])] == list(range(20))
    assert worker.health().failed == 0
    assert worker.health().state == "running"


def test_calls_of_the_context_inside_transactions_do_not_wait_for_each_other(app, work, db):
    """Each transaction has a connection, and inside it the task needs another one."""
    together = threading.Barrier(10)

    @app.task()
    def imports(ctx: Ctx, n: int) -> int:
        def fill(conn: psycopg.Connection) -> int:
            together.wait(90)
            ctx.progress(50)
            return n

        return ctx.transaction("fill", fill)

    work(slots=16, lease_ttl_ms=30_000)
    handles = imports.enqueue_many([(n,) for n in range(10)])
    assert [h.result(90) for h in handles] == list(range(10))


def test_the_times_at_which_something_becomes_due_are_forgotten_when_they_are_over():
    lanes = Lanes({"busy": 1.0})
    for _ in range(1000):
        lanes.due("busy", 0.0)
    assert len(lanes._due["busy"]) <= 2


def test_exceptions_that_are_worth_another_attempt_may_be_given_in_any_way(app, work):
    tried = []

    @app.task(retry=Fixed(max=1, delay_ms=0, on=[OSError]))  # type: ignore[arg-type]
    def flaky() -> int:
        tried.append(1)
        if len(tried) == 1:
            raise OSError
        return len(tried)

    worker = work()
    assert flaky.enqueue().result(90) == 2
    assert worker.health().healthy
    with pytest.raises(TypeError, match="on: expected exceptions"):
        Fixed(on=("OSError",))  # type: ignore[arg-type]


def test_a_worker_behind_a_pooler_does_all_of_it(app, dsn, engine, db):
    """Each statement may use another connection of the server, and there is no LISTEN."""
    tokens = []

    @app.task()
    def child(n: int) -> int:
        return n

    @app.task(retry=Fixed(max=1, delay_ms=0))
    def parent(ctx: Ctx, n: int) -> int:
        total = sum(ctx.step(f"step {i}", abs, -i) for i in range(8))
        ctx.transaction("book", lambda conn: conn.execute("select 1").fetchone()[0])
        if ctx.attempt == 0:
            raise OSError
        answer = ctx.wait("ok", on_token=lambda token: (tokens.append(token), None)[1])
        return total + len(answer.name) + sum(ctx.gather(*[ctx.spawn(child, k) for k in range(n)]))

    @app.task()
    async def coroutine(ctx: AsyncCtx) -> int:
        await ctx.sleep(10)
        return sum([await ctx.step(f"step {i}", abs, -i) for i in range(8)])

    with (
        pooled(dsn) as through,
        Worker(app, through, prepare=False, poll_s=0.1, lease_ttl_ms=60_000) as worker,
    ):
        handles = parent.enqueue_many([(3,) for _ in range(4)])
        others = [coroutine.enqueue() for _ in range(4)]
        until(lambda: len(tokens) == 4)
        for token in tokens:
            send_signal(token, "yes", conn=engine)
        assert [h.result(90) for h in handles] == [28 + 3 + 3] * 4
        assert [h.result(90) for h in others] == [28] * 4
        assert not worker.health().listening
        assert db.execute("show lock_timeout").fetchone() == ("0",)
    sound(db)
