"""What a task can do: steps, waits, sleeps, children, streams."""

import dataclasses
import functools
import json

import psycopg
import pytest

import pyff
from pyff import (
    AsyncCtx,
    Backoff,
    Ctx,
    DuplicateStep,
    ExecutionAlreadyTerminal,
    Fail,
    Fixed,
    LeaseExpired,
    Signal,
    StaleLease,
    TargetNotSignalable,
    TaskCancelled,
    TaskFailed,
    Token,
    WaitTimeout,
    send_signal,
)
from pyff.app.run import Run
from pyff.testing import advance, drain

NOW = Fixed(max=3, delay_ms=0)


@dataclasses.dataclass
class Quote:
    total: float


def sound(db):
    assert db.execute("select * from ff_check_invariants()").fetchall() == []


def test_a_finished_step_is_not_run_again_after_a_failure(app, db):
    ran = []

    @app.task(retry=NOW)
    def charge(ctx: Ctx, n: int) -> float:
        quote = ctx.step("quote", price, n)
        assert isinstance(quote, Quote)
        ctx.step("book", ran.append, "book")
        if len(ran) < 5:
            ran.append("fails")
            raise OSError("try again")
        return quote.total

    def price(n: int) -> Quote:
        ran.append("price")
        return Quote(n * 1.5)

    handle = charge.enqueue(2)
    drain(app, db)
    assert handle.result(0) == 3.0
    assert ran == ["price", "book", "fails", "fails", "fails"]
    assert handle.describe().total_attempt_count == 4
    sound(db)


def test_a_step_that_failed_is_run_again_and_what_it_raised_is_raised(app, db):
    tries = []

    @app.task(retry=NOW)
    def charge(ctx: Ctx) -> int:
        return ctx.step("pay", pay)

    def pay() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("no line")
        return len(tries)

    handle = charge.enqueue()
    report = drain(app, db)
    assert handle.result(0) == 3
    assert [str(e) for e in report.errors] == ["no line", "no line"]


def test_two_steps_of_one_name_are_refused_at_once(app, db):
    ran = []

    @app.task()
    def twice(ctx: Ctx) -> None:
        ctx.step("a", ran.append, 1)
        ctx.step("a", ran.append, 2)

    handle = twice.enqueue()
    with pytest.raises(DuplicateStep, match="the name 'a' is already used"):
        drain(app, db, reraise=True)
    assert ran == [1]
    assert handle.state() == "failed"


def test_a_step_returns_the_same_the_first_time_and_later(app, db):
    seen = []

    @app.task(retry=NOW)
    def charge(ctx: Ctx) -> None:
        seen.append(ctx.step("pair", lambda: (1, {"b": 2})))
        if len(seen) == 1:
            raise OSError

    charge.enqueue()
    drain(app, db)
    assert seen == [[1, {"b": 2}]] * 2


def test_a_step_without_a_type_that_is_not_json_says_what_to_do(app, db):
    @app.task(retry=NOW)
    def charge(ctx: Ctx) -> None:
        ctx.step("quote", lambda: Quote(1))

    handle = charge.enqueue()
    drain(app, db)
    with pytest.raises(TaskFailed, match="annotate its type"):
        handle.result(0)
    assert handle.describe().total_attempt_count == 1


def test_the_type_of_a_step_is_found_behind_partials_tasks_and_objects(app, db):
    @app.task()
    def price(total: float) -> Quote:
        return Quote(total)

    class Prices:
        def __call__(self, total: float) -> Quote:
            return Quote(total)

        def at(self, total: float) -> Quote:
            return Quote(total)

    @app.task()
    def buy(ctx: Ctx) -> list[Quote]:
        return [
            ctx.step("task", price, 1.0),
            ctx.step("partial", functools.partial(price, 2.0)),
            ctx.step("object", Prices(), 3.0),
            ctx.step("method", Prices().at, 4.0),
        ]

    handle = buy.enqueue()
    drain(app, db, reraise=True)
    assert handle.result(0) == [Quote(1.0), Quote(2.0), Quote(3.0), Quote(4.0)]


def test_a_stale_worker_records_nothing(app, engine, db):
    @app.task()
    def charge(ctx: Ctx) -> None: ...

    charge.enqueue()
    row = engine.claim("default", "w", "w-1", lease_ttl_ms=1000)
    advance(db, 2000)
    assert engine.claim("default", "w", "w-2").handle_kind == "reclaimed"
    run = Run(row.handle, "fresh", row.execution_id, "charge", None, 0)
    ctx = Ctx(run, engine)
    did = []
    with pytest.raises(StaleLease):
        ctx.step("a", did.append, 1)
    assert did == [1]  # it was running
    assert engine.read_steps(row.execution_id) == []
    with pytest.raises(TaskCancelled):
        ctx.step("b", did.append, 2)
    assert did == [1]
    for late in (lambda: ctx.progress(1), lambda: ctx.emit("x"), lambda: ctx.wait("w"), lambda: ctx.sleep(5)):
        with pytest.raises(TaskCancelled):
            late()


def test_a_wait_frees_the_slot_and_goes_on_with_the_signal(app, engine, db):
    tokens, ran = [], []

    @app.task(lane="billing")
    def charge(ctx: Ctx, order: int) -> str:
        ctx.step("reserve", ran.append, "reserve")
        answer = ctx.wait(
            "approval", signals={"approve", "reject"}, timeout_ms=86_400_000, on_token=tokens.append
        )
        ran.append("after")
        return f"{answer.name} by {answer.json()['by']}"

    handle = charge.enqueue(1)
    report = drain(app, db)
    assert report.paused == [handle.execution_id]
    assert handle.state() == "suspended"
    (token,) = tokens
    assert isinstance(token, Token)
    assert Token.parse(token.url_param) == token
    assert token.secret not in repr(token)
    answer = send_signal(token.url_param, "maybe", {"by": "bob"}, conn=engine)
    assert (answer.matched, answer.resumed) == (False, False)
    assert send_signal(token.url_param, "approve", {"by": "ann"}, conn=engine).resumed
    drain(app, db)
    assert handle.result(0) == "approve by ann"
    assert ran == ["reserve", "after"]
    assert len(tokens) == 1
    assert handle.describe().total_attempt_count == 1
    with pytest.raises(TargetNotSignalable):
        send_signal(token, "approve", {"by": "eve"}, conn=engine)
    sound(db)


def test_two_waits_one_after_the_other(app, engine, db):
    tokens = {}

    @app.task()
    def charge(ctx: Ctx) -> list[str]:
        got = []
        for who in ("ann", "bob"):
            signal = ctx.wait(who, on_token=lambda token, who=who: tokens.setdefault(who, []).append(token))
            got.append(signal.name)
        return got

    handle = charge.enqueue()
    for who in ("ann", "bob"):
        drain(app, db)
        assert handle.state() == "suspended"
        send_signal(tokens[who][0], f"from {who}", conn=engine)
    drain(app, db)
    assert handle.result(0) == ["from ann", "from bob"]
    assert {who: len(found) for who, found in tokens.items()} == {"ann": 1, "bob": 1}
    sound(db)


def test_a_signal_outlives_a_later_failure_and_is_not_asked_for_again(app, engine, db):
    tokens, tries = [], []

    @app.task(retry=NOW)
    def charge(ctx: Ctx) -> str:
        answer = ctx.wait("approval", on_token=tokens.append)
        tries.append(ctx.attempt)
        if ctx.attempt == 0:
            raise OSError("crash after the approval")
        return answer.name

    handle = charge.enqueue()
    drain(app, db)
    send_signal(tokens[0], "approve", conn=engine)
    drain(app, db)
    assert handle.result(0) == "approve"
    assert (tries, len(tokens)) == ([0, 1], 1)


def test_a_signal_outlives_a_failure_before_the_task_gets_to_its_wait_again(app, engine, db):
    """The sender got the outcome accepted, and sends it only once."""
    tokens, runs = [], []

    @app.task(retry=NOW)
    def charge(ctx: Ctx) -> str:
        runs.append(ctx.attempt)
        if len(runs) == 2:
            raise OSError("something that is read again at the start of each run")
        return ctx.wait("approval", on_token=tokens.append).name

    @app.task(retry=NOW)
    async def charge_too(ctx: AsyncCtx) -> str:
        runs.append(ctx.attempt)
        if len(runs) == 2:
            raise OSError
        try:
            return (await ctx.wait("approval", on_token=tokens.append, timeout_ms=1000)).name
        except WaitTimeout:
            return "too late"

    handle = charge.enqueue()
    drain(app, db)
    send_signal(tokens[0], "approve", conn=engine)
    drain(app, db)
    assert handle.result(0) == "approve"
    assert (runs, len(tokens)) == ([0, 0, 1], 1)
    runs.clear()
    late = charge_too.enqueue()
    drain(app, db)
    advance(db, 1001)
    engine.expire_suspension(late.execution_id)
    drain(app, db)
    assert late.result(0) == "too late"
    assert (runs, len(tokens)) == ([0, 0, 1], 2)
    sound(db)


def test_a_signal_that_came_before_the_wait_counts(app, engine, db):
    @app.task()
    def charge(ctx: Ctx) -> str:
        return ctx.wait("approval", on_token=lambda token: send_signal(token, "quick", conn=engine)).name

    handle = charge.enqueue()
    report = drain(app, db)
    assert (report.runs, report.paused) == (1, [])
    assert handle.result(0) == "quick"
    sound(db)


def test_an_answer_that_was_recorded_is_not_recorded_again(app, engine, db):
    """Later limits do not matter: the signal was within the limits when it arrived."""
    tokens: list[Token] = []

    @app.task()
    def charge(ctx: Ctx) -> str:
        answer = ctx.wait("approval", on_token=tokens.append).name
        ctx.sleep(1000)
        return answer

    handle = charge.enqueue()
    drain(app, db)
    send_signal(tokens[0], "large", {"text": "x" * 30_000}, conn=engine)
    drain(app, db)
    db.execute("select ff_set_setting('max_step_result_bytes', '5000')")
    advance(db, 1000)
    drain(app, db)
    assert handle.result(0) == "large"
    sound(db)


def test_a_wait_among_thousands_of_steps_is_answered(app, engine, db):
    tokens: list[Token] = []
    ran: list[int] = []

    @app.task()
    def charge(ctx: Ctx) -> str:
        for number in range(1003):
            ctx.step(f"step {number}", ran.append, number)
        return ctx.wait("approval", on_token=tokens.append).name

    handle = charge.enqueue()
    drain(app, db)
    send_signal(tokens[0], "go", conn=engine)
    drain(app, db)
    assert handle.result(0) == "go"
    assert ran == list(range(1003))


def test_a_wait_without_a_token_is_answered_by_an_operator(app, engine, db):
    @app.task()
    def charge(ctx: Ctx) -> str:
        return ctx.wait("approval", signals="approve", reason="waiting_for_approval").name

    handle = charge.enqueue()
    drain(app, db)
    (point,) = engine.list_pending_waitpoints(handle.execution_id)
    engine.deliver_approval_signal(handle.execution_id, "default", point.waitpoint_id, "approve", "1")
    drain(app, db)
    assert handle.result(0) == "approve"


def test_a_wait_that_an_operator_ended_says_so(app, engine, db):
    @app.task()
    def charge(ctx: Ctx) -> str:
        signal = ctx.wait("approval")
        assert signal == Signal("resumed", source_type="operator")
        return signal.name

    handle = charge.enqueue()
    drain(app, db)
    engine.resume_execution(handle.execution_id)
    drain(app, db)
    assert handle.result(0) == "resumed"


def test_a_wait_that_times_out_raises_in_the_task(app, engine, db):
    @app.task()
    def charge(ctx: Ctx) -> str:
        try:
            ctx.wait("approval", timeout_ms=1000)
        except WaitTimeout as error:
            return str(error.detail["wait"])
        return "signal"

    handle = charge.enqueue()
    drain(app, db)
    advance(db, 1000)
    assert engine.expire_suspension(handle.execution_id).outcome == "auto_resumed"
    drain(app, db)
    assert handle.result(0) == "approval"
    sound(db)


@pytest.mark.parametrize(
    ("behaviour", "state"),
    [("fail", "failed"), ("cancel", "cancelled"), ("expire", "expired"), ("escalate", "suspended")],
)
def test_a_wait_that_times_out_ends_as_it_was_told(app, engine, db, behaviour, state):
    @app.task()
    def charge(ctx: Ctx) -> None:
        ctx.wait("approval", timeout_ms=1000, on_timeout=behaviour)

    handle = charge.enqueue()
    drain(app, db)
    advance(db, 1000)
    engine.expire_suspension(handle.execution_id)
    assert handle.state() == state


def test_a_pause_passes_through_except_exception(app, engine, db):
    @app.task()
    def careless(ctx: Ctx) -> str:
        try:
            return ctx.wait("approval").name
        except Exception:
            return "caught"

    @app.task()
    def worse(ctx: Ctx) -> str:
        try:
            return ctx.wait("approval").name
        except BaseException:
            return "caught"

    handles = [careless.enqueue(), worse.enqueue()]
    drain(app, db)
    for handle in handles:
        assert handle.state() == "suspended"
        engine.resume_execution(handle.execution_id)
    drain(app, db)
    assert [h.result(0) for h in handles] == ["resumed", "resumed"]


def test_a_sleep_frees_the_slot_until_its_time(app, db):
    ran = []

    @app.task()
    def nap(ctx: Ctx) -> None:
        ran.append("before")
        ctx.sleep(60_000)
        ran.append("between")
        ctx.sleep(30_000, name="second")
        ran.append("after")

    handle = nap.enqueue()
    drain(app, db)
    assert handle.state() == "delayed"
    advance(db, 59_000)
    drain(app, db)
    assert ran == ["before"]
    advance(db, 1_001)
    drain(app, db)
    assert ran == ["before", "before", "between"]
    advance(db, 31_000)
    drain(app, db)
    assert ran[3:] == ["before", "between", "after"]
    assert handle.state() == "completed"
    sound(db)


def test_children_run_in_the_flow_of_their_parent_and_are_gathered(app, db, engine):
    begun = []

    @app.task()
    def square(n: int) -> int:
        return n * n

    @app.task()
    def total(ctx: Ctx, upto: int) -> int:
        begun.append(upto)
        return sum(ctx.gather(*[ctx.spawn(square, n) for n in range(upto)]))

    handle = total.enqueue(5)
    report = drain(app, db)
    assert handle.result(0) == 30
    assert begun == [5, 5]
    assert report.runs == 7
    flow_id = handle.describe().flow_id
    assert engine.describe_flow(flow_id).public_flow_state == "completed"
    assert engine.describe_flow(flow_id).node_count == 6
    sound(db)


def test_a_child_may_have_children_and_gathers_may_follow_each_other(app, db):
    @app.task()
    def fib(ctx: Ctx, n: int) -> int:
        if n < 2:
            return n
        (a,) = ctx.gather(ctx.spawn(fib, n - 1, key="left"))
        (b,) = ctx.gather(ctx.spawn(fib, n - 2, key="right"))
        return a + b

    handle = fib.enqueue(5)
    drain(app, db)
    assert handle.result(0) == 5
    sound(db)


def test_a_child_that_failed_is_raised_by_gather_and_told_by_settle(app, db):
    @app.task()
    def half(n: int) -> float:
        if n % 2:
            raise Fail("odd", retryable=False, category="oddness")
        return n / 2

    @app.task()
    def strict(ctx: Ctx) -> list[float]:
        return ctx.gather(ctx.spawn(half, 2), ctx.spawn(half, 3))

    @app.task()
    def lenient(ctx: Ctx) -> list[str]:
        return [str(getattr(x, "category", x)) for x in ctx.settle(ctx.spawn(half, 2), ctx.spawn(half, 3))]

    one, two = strict.enqueue(), lenient.enqueue()
    drain(app, db)
    with pytest.raises(TaskFailed, match=r"TaskFailed: execution .* failed: odd"):
        one.result(0)
    assert two.result(0) == ["1.0", "oddness"]
    sound(db)


def test_a_retry_finds_the_children_of_the_first_attempt(app, db):
    ran = []

    @app.task()
    def child(n: int) -> int:
        ran.append(n)
        return n

    @app.task(retry=NOW)
    def parent(ctx: Ctx) -> int:
        (n,) = ctx.gather(ctx.spawn(child, 7))
        if ctx.attempt == 0:
            raise OSError
        return n

    handle = parent.enqueue()
    drain(app, db)
    assert handle.result(0) == 7
    assert ran == [7]


def test_a_stale_worker_spawns_no_child(app, engine, db):
    """It creates no child and no flow, and is added to none."""

    @app.task()
    def child(n: int) -> None: ...

    engine.create_execution("default")
    row = engine.claim("default", "w", "w-1", lease_ttl_ms=1000)
    ctx = Ctx(Run(row.handle, "fresh", row.execution_id, "parent", None, 0), engine)
    advance(db, 2000)
    assert engine.claim("default", "w", "w-2").handle_kind == "reclaimed"
    with pytest.raises(StaleLease):
        ctx.spawn(child, 1)
    assert ctx.cancelled
    assert db.execute("select count(*), count(flow_id) from ff_exec_core").fetchone() == (1, 0)
    assert db.execute("select count(*) from ff_flow_core").fetchone() == (0,)


def test_children_are_not_doubled_however_often_the_task_is_run_again(app, engine, db):
    """A crash may come between any two of them."""
    ran = []

    @app.task(lane="later")
    def child(n: int) -> int:
        ran.append(n)
        return n

    @app.task()
    def parent(ctx: Ctx) -> list[int]:
        children = [ctx.spawn(child, n) for n in range(3)]
        return ctx.gather(*children)

    handle = parent.enqueue()
    for crash_after in (1, 2):  # a run of its own each, which dies after so many
        row = engine.claim("default", "w", f"w-{crash_after}", lease_ttl_ms=1000)
        assert row.execution_id == handle.execution_id
        ctx = Ctx(
            Run(row.handle, row.handle_kind, row.execution_id, "parent", None, row.attempt_index), engine
        )
        found = [ctx.spawn(child, n) for n in range(crash_after)]
        assert [c.outcome for c in found] == ["duplicate"] * (crash_after - 1) + ["created"]
        advance(db, 2000)
    drain(app, db)
    assert handle.result(0) == [0, 1, 2]
    assert sorted(ran) == [0, 1, 2]
    sound(db)


def test_children_of_a_task_that_fails_are_cancelled_unless_detached(app, engine, db):
    ran = []

    @app.task(lane="later")
    def child(name: str) -> None:
        ran.append(name)

    @app.task()
    def parent(ctx: Ctx) -> None:
        ctx.spawn(child, "attached")
        ctx.spawn(child, "detached", detached=True)
        raise Fail("no", retryable=False)

    handle = parent.enqueue()
    drain(app, db, lanes=["default"])
    found = {row.detached: row for row in engine.list_children(handle.execution_id)}
    assert (found[False].public_state, found[True].public_state) == ("cancelled", "waiting")
    assert engine.describe_execution(found[True].execution_id).parent_execution_id == handle.execution_id
    drain(app, db)
    assert ran == ["detached"]
    sound(db)


def test_a_replayed_task_gathers_the_children_that_are_replayed_with_it(app, engine, db):
    ran, broken = [], [True]

    @app.task()
    def child(n: int) -> int:
        ran.append(n)
        if broken and n == 2:
            raise Fail("broken", retryable=False)
        return n

    @app.task()
    def parent(ctx: Ctx) -> list[int]:
        return ctx.gather(*[ctx.spawn(child, n) for n in (1, 2)])

    handle = parent.enqueue()
    drain(app, db)
    assert handle.describe().public_state == "failed"
    assert sorted(ran) == [1, 2]
    broken.clear()
    engine.replay_execution(handle.execution_id)
    sound(db)
    drain(app, db)
    assert handle.result(0) == [1, 2]
    assert sorted(ran) == [1, 2, 2]
    sound(db)


def test_a_task_whose_execution_has_ended_spawns_nothing(app, engine, db):
    @app.task()
    def child(n: int) -> None: ...

    parent = engine.create_execution("default").execution_id
    row = engine.claim("default", "w", "w-1")
    ctx = Ctx(Run(row.handle, "fresh", row.execution_id, "parent", None, 0), engine)
    ctx.spawn(child, 1)
    engine.cancel_execution(parent)
    with pytest.raises(ExecutionAlreadyTerminal):
        ctx.spawn(child, 2)
    assert ctx.cancelled
    assert len(engine.list_children(parent)) == 1


def test_progress_and_frames_are_there_for_others(app, engine, db):
    @app.task(tags={"app.kind": "x"})
    def work(ctx: Ctx) -> None:
        ctx.progress(40, "almost")
        ctx.emit(b"\x00", type="blob")
        ctx.emit("text", key="once")
        ctx.emit("text", key="once")
        ctx.emit({"a": 1}, mode="durable_summary")
        assert ctx.tags == {"app.kind": "x"}
        assert (ctx.attempt, ctx.resumed, ctx.lane, ctx.cancelled) == (0, False, "default", False)

    handle = work.enqueue()
    drain(app, db, reraise=True)
    (attempt,) = engine.list_attempts(handle.execution_id)
    assert (attempt.progress_pct, attempt.progress_message) == (40, "almost")
    frames = engine.read_stream(handle.execution_id, 0)
    assert [(f.frame_type, f.payload, f.encoding) for f in frames] == [
        ("blob", b"\x00", "bytes"),
        ("event", b"text", "utf8"),
        ("event", b'{"a":1}', "json"),
    ]
    assert engine.read_summary(handle.execution_id, 0).document == {"a": 1}


def test_a_shielded_stretch_is_told_at_its_end(engine):
    run = Run("h", "fresh", "{fp:0}:x", "t", None, 0)
    ctx = Ctx(run, engine)
    did = []

    def shielded() -> None:
        with ctx.shield():
            run.lose("lease_revoked")
            assert ctx.cancelled
            did.append("to the end")

    with pytest.raises(TaskCancelled, match="lease_revoked"):
        shielded()
    assert did


def test_exceptions_decide_about_retries(app, db):
    tried = {"a": 0, "b": 0, "c": 0, "d": 0}

    @app.task(retry=Backoff(max=2, base_ms=1, on=(OSError,)))
    def work(name: str) -> None:
        tried[name] += 1
        raise {
            "a": OSError("x"),
            "b": ValueError("x"),
            "c": Fail("x", retryable=False),
            "d": Fail("x"),
        }[name]

    handles = {name: work.enqueue(name) for name in tried}
    for _ in range(4):
        drain(app, db)
        advance(db, 60_000)
    assert tried == {"a": 3, "b": 1, "c": 1, "d": 3}
    assert {h.state() for h in handles.values()} == {"failed"}


def test_async_tasks_do_all_of_it_too(app, engine, db):
    tokens = []

    async def slow_price(n: int) -> Quote:
        return Quote(n)

    def quick(n: int) -> int:
        return n + 1

    @app.task()
    async def child(n: int) -> int:
        return n

    async def mail(token: Token) -> None:
        tokens.append(token)

    @app.task()
    async def work(ctx: AsyncCtx, n: int) -> list[object]:
        quote = await ctx.step("price", slow_price, n)
        more = await ctx.step("quick", quick, n)
        signal = await ctx.wait("ok", on_token=mail)
        await ctx.sleep(1000)
        kids = await ctx.gather(await ctx.spawn(child, 8))
        await ctx.progress(100)
        await ctx.emit({"done": True})
        return [quote.total, more, signal.name, *kids]

    handle = work.enqueue(3)
    drain(app, db, reraise=True)
    send_signal(tokens[0], "yes", conn=engine)
    drain(app, db, reraise=True)
    advance(db, 1000)
    drain(app, db, reraise=True)
    assert handle.result(0) == [3, 4, "yes", 8]
    assert len(tokens) == 1
    sound(db)


def test_a_context_of_the_wrong_kind_is_refused(app):
    @app.task()
    async def work(ctx: Ctx) -> None: ...

    with pytest.raises(TypeError, match="takes AsyncCtx"):
        work.enqueue()


def test_steps_are_plain_rows_for_other_clients(app, engine, db):
    @app.task()
    def work(ctx: Ctx) -> None:
        ctx.step("quote", price)

    def price() -> Quote:
        return Quote(2)

    handle = work.enqueue()
    drain(app, db)
    (step,) = engine.read_steps(handle.execution_id)
    assert (step.name, json.loads(step.result), step.result_encoding) == ("quote", {"total": 2}, "json")
    assert pyff.Paused.__mro__[1] is BaseException


def test_a_transaction_and_its_record_are_committed_together(app, engine, db):
    db.execute("create table booking (n int)")
    failures = []

    @app.task(retry=NOW)
    def book(ctx: Ctx, n: int) -> int:
        made = ctx.transaction("book", insert, n)
        if ctx.attempt == 0:
            raise OSError("after the commit")
        return made

    def insert(conn: psycopg.Connection, n: int) -> int:
        conn.execute("insert into booking values (%s)", [n])
        if not failures:
            failures.append(1)
            raise OSError("before the commit")
        return n

    handle = book.enqueue(5)
    drain(app, db)
    assert handle.result(0) == 5
    assert db.execute("select n from booking").fetchall() == [(5,)]
    assert handle.describe().total_attempt_count == 2


def test_a_stale_worker_commits_nothing(app, engine, db):
    db.execute("create table booking (n int)")
    engine.create_execution("default")
    row = engine.claim("default", "w", "w-1", lease_ttl_ms=1000)
    ctx = Ctx(Run(row.handle, "fresh", row.execution_id, "x", None, 0), engine)
    advance(db, 2000)
    with pytest.raises(LeaseExpired):
        ctx.transaction("book", lambda conn: conn.execute("insert into booking values (1)") and None)
    assert db.execute("select n from booking").fetchall() == []


def test_an_async_task_has_transactions_too(app, db, dsn):
    db.execute("create table booking (n int)")

    @app.task()
    async def book(ctx: AsyncCtx) -> int:
        return await ctx.transaction("book", insert)

    async def insert(conn: psycopg.AsyncConnection) -> int:
        await conn.execute("insert into booking values (1), (2)")
        found = await (await conn.execute("select count(*) from booking")).fetchone()
        return found[0] + sum([n async for (n,) in await conn.execute("select n from booking")])

    one, two = book.enqueue(), book.enqueue()
    drain(app, db, reraise=True)
    assert sorted((one.result(0), two.result(0))) == [5, 10]
