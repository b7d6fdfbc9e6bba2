"""Work during a deployment: executions that the deployed code cannot run are put off, and no signal is lost."""

import pytest

from pyff import App, AsyncCtx, Backoff, Ctx, Token, send_signal
from pyff.doctor.context import CheckContext, Thresholds
from pyff.doctor.stuck import check
from pyff.testing import advance, drain, freeze

DAY = 86_400_000


def sound(db):
    assert db.execute("select * from ff_check_invariants()").fetchall() == []


def first_version(engine, tokens: list[Token], **options) -> App:
    app = App().bind(engine)

    @app.task(**options)
    def charge(ctx: Ctx, order: int) -> str:
        return f"{order}: {ctx.wait('approval', on_token=tokens.append).name}"

    return app


def changed_payload(engine) -> App:
    app = App().bind(engine)

    @app.task()
    def charge(ctx: Ctx, order: dict[str, int]) -> str:
        return f"{order}: {ctx.wait('approval').name}"

    return app


def changed_payload_async(engine) -> App:
    app = App().bind(engine)

    @app.task()
    async def charge(ctx: AsyncCtx, order: dict[str, int]) -> str:
        return f"{order}: {(await ctx.wait('approval')).name}"

    return app


def without_context(engine) -> App:
    app = App().bind(engine)

    @app.task()
    def charge(order: dict[str, int]) -> str:
        return str(order)

    return app


def without_the_task(engine) -> App:
    return App().bind(engine)


def missing_import(engine) -> App:
    app = App().bind(engine)

    @app.task()
    def charge(ctx: Ctx, order: int) -> str:
        import a_module_that_is_not_installed  # type: ignore[import-not-found]

        return str(a_module_that_is_not_installed)

    return app


SECOND_VERSIONS = [changed_payload, changed_payload_async, without_context, without_the_task, missing_import]


def approved(engine, db, **options):
    """An execution of the first version whose wait was ended by a signal that no worker has seen."""
    tokens: list[Token] = []
    app = first_version(engine, tokens, **options)
    handle = app.tasks["charge"].enqueue(7)
    drain(app, db)
    assert send_signal(tokens[0], "approve", conn=engine).outcome == "accepted"
    return app, handle, tokens


@pytest.mark.parametrize("second_version", SECOND_VERSIONS)
def test_a_signal_outlives_a_deploy_that_cannot_run_the_task_and_its_rollback(engine, db, second_version):
    app, handle, tokens = approved(engine, db)
    assert drain(second_version(engine), db).failed == []
    assert handle.state() == "delayed"
    advance(db, DAY)
    drain(app, db)
    assert handle.result(0) == "7: approve"
    assert (len(tokens), handle.describe().total_attempt_count) == (1, 1)
    sound(db)


@pytest.mark.parametrize("second_version", SECOND_VERSIONS)
def test_a_replay_after_a_rollback_goes_on_with_the_signal(engine, db, second_version):
    app, handle, tokens = approved(engine, db)
    drain(second_version(engine), db)
    assert [step.name for step in engine.read_steps(handle.execution_id)][-1] == "pyff:wait:approval"
    engine.cancel_execution(handle.execution_id)
    engine.replay_execution(handle.execution_id)
    drain(app, db)
    assert handle.result(0) == "7: approve"
    assert len(tokens) == 1
    sound(db)


def test_a_signal_outlives_the_crash_of_workers_that_claimed_and_did_not_record_it(engine, db):
    app, handle, tokens = approved(engine, db)
    assert engine.claim("default", "w", "w-1").handle_kind == "resumed"
    for _ in range(2):
        advance(db, DAY)
        assert engine.claim("default", "w", "w-2").handle_kind == "reclaimed"
    advance(db, DAY)
    drain(app, db)
    assert handle.result(0) == "7: approve"
    assert len(tokens) == 1
    sound(db)


def test_a_signal_that_no_run_has_seen_is_there_after_a_replay(engine, db):
    app, handle, tokens = approved(engine, db, deadline_ms=1000)
    advance(db, 1001)
    drain(app, db)
    assert handle.state() == "expired"
    engine.replay_execution(handle.execution_id)
    drain(app, db)
    assert handle.result(0) == "7: approve"
    assert len(tokens) == 1
    sound(db)


def test_a_signal_outlives_a_worker_that_claimed_it_and_ran_out_of_the_time_of_the_attempt(engine, db):
    freeze(db)
    app, handle, tokens = approved(engine, db, timeout_ms=5000, retry=Backoff(1))
    assert engine.claim("default", "w", "w-1").handle_kind == "resumed"
    advance(db, 5001)
    assert drain(app, db).runs == 0
    advance(db, DAY)
    drain(app, db)
    assert handle.result(0) == "7: approve"
    assert (len(tokens), handle.describe().retry_count) == (1, 1)
    sound(db)


def given_back_and_cancelled(engine, handle):
    """A worker claimed it and gave it back before a slot was free; then an operator cancelled it."""
    claim = engine.claim("default", "w", "w-1")
    engine.delay(claim.handle, delay_ms=0)
    engine.cancel_execution(handle.execution_id)


def test_a_signal_that_was_claimed_and_given_back_is_there_after_a_replay(engine, db):
    app, handle, tokens = approved(engine, db)
    given_back_and_cancelled(engine, handle)
    engine.replay_execution(handle.execution_id)
    drain(app, db)
    assert handle.result(0) == "7: approve"
    assert len(tokens) == 1
    sound(db)


def test_the_signal_of_a_second_wait_within_one_millisecond_is_there_after_a_replay(engine, db):
    freeze(db)
    tokens: list[Token] = []
    app = App().bind(engine)

    @app.task()
    def charge(ctx: Ctx) -> list[str]:
        return [ctx.wait(name, on_token=tokens.append).name for name in ("first", "second")]

    handle = charge.enqueue()
    for n in range(2):
        drain(app, db)
        send_signal(tokens[n], f"yes {n}", conn=engine)
    engine.cancel_execution(handle.execution_id)
    engine.replay_execution(handle.execution_id)
    drain(app, db)
    assert handle.result(0) == ["yes 0", "yes 1"]
    assert len(tokens) == 2
    sound(db)


@pytest.mark.own_session("holds a lock")
def test_a_signal_that_could_not_be_recorded_in_time_is_recorded_by_a_later_run(engine, db, connect):
    app, handle, tokens = approved(engine, db)
    db.execute("set lock_timeout = '10ms'")
    with connect() as other, other.transaction():
        other.execute("lock table ff_step in exclusive mode")
        report = drain(app, db)
        assert (report.put_off, report.failed) == ([handle.execution_id], [])
    advance(db, DAY)
    drain(app, db)
    assert handle.result(0) == "7: approve"
    assert (len(tokens), handle.describe().total_attempt_count) == (1, 1)
    sound(db)


def test_forgotten_steps_include_a_signal_that_no_run_has_seen(engine, db):
    app, handle, tokens = approved(engine, db)
    given_back_and_cancelled(engine, handle)
    engine.forget_steps(handle.execution_id)
    engine.replay_execution(handle.execution_id)
    drain(app, db)
    assert (handle.state(), len(tokens)) == ("suspended", 2)
    send_signal(tokens[1], "again", conn=engine)
    drain(app, db)
    assert handle.result(0) == "7: again"


@pytest.mark.parametrize("early", [False, True])
def test_a_signal_that_is_too_large_to_be_recorded_is_put_off_until_the_setting_allows_it(engine, db, early):
    engine.set_setting("max_payload_bytes", "1000000")
    tokens: list[Token] = []
    app = App().bind(engine)

    def send(token: Token) -> None:
        send_signal(token, "approve", {"document": "x" * 700_000}, conn=engine)

    def mail(token: Token) -> None:
        tokens.append(token)
        if early:
            send(token)

    @app.task()
    def charge(ctx: Ctx) -> int:
        return len(ctx.wait("approval", on_token=mail).payload or b"")

    handle = charge.enqueue()
    if not early:
        drain(app, db)
        send(tokens[0])
    assert len(drain(app, db).put_off) == 1
    assert "cannot read or record its signals and steps" in handle.describe().progress_message
    engine.set_setting("max_step_result_bytes", "2000000")
    advance(db, DAY)
    drain(app, db)
    assert handle.result(0) > 700_000
    assert len(tokens) == 1
    sound(db)


def test_a_wait_that_was_forgotten_asks_again(engine, db):
    app, handle, tokens = approved(engine, db)
    drain(app, db)
    assert handle.result(0) == "7: approve"
    engine.forget_steps(handle.execution_id)
    engine.replay_execution(handle.execution_id)
    drain(app, db)
    assert handle.state() == "suspended"
    send_signal(tokens[1], "again", conn=engine)
    drain(app, db)
    assert handle.result(0) == "7: again"


def stuck(db):
    return db.execute("select kind, lane_id, waiting, waits_for, what_to_do from ff_v_stuck").fetchall()


@pytest.mark.parametrize(
    ("second_version", "why"),
    [
        (changed_payload, "the payload does not fit the task: expected an object, got int"),
        (changed_payload_async, "the payload does not fit the task: expected an object, got int"),
        (without_context, "the payload does not fit the task: expected an object, got int"),
        (without_the_task, "task 'charge' is not registered"),
        (missing_import, "ModuleNotFoundError: No module named 'a_module_that_is_not_installed'"),
    ],
)
def test_what_cannot_be_run_here_is_put_off_for_longer_and_longer_and_shown(engine, db, second_version, why):
    freeze(db)
    made = engine.create_execution("default", execution_kind="charge", payload=b"7").execution_id
    app = second_version(engine)
    pauses = []
    for n in range(1, 12):
        report = drain(app, db)
        assert (report.put_off, report.failed) == ([made], [])
        found = engine.describe_execution(made)
        assert found.progress_message.startswith(f"put off {n} times: {why}")
        pauses.append(found.delay_until_ms - engine.now_ms())
        ((kind, lane, waiting, waits_for, what_to_do),) = stuck(db)
        assert (kind, lane, waiting) == ("put_off", "default", 1)
        assert why in waits_for
        assert f"ff_cancel_execution('{made}')" in what_to_do
        advance(db, pauses[-1])
    assert pauses == [min(1000 * 2**n, 300_000) for n in range(11)]
    assert (found.retry_count, found.total_attempt_count) == (0, 1)
    sound(db)


def test_doctor_names_what_is_put_off(engine, db):
    engine.create_execution("default", execution_kind="charge", payload=b"7")
    assert list(check(CheckContext.prepared(db, Thresholds()))) == []
    drain(without_the_task(engine), db)
    (finding,) = check(CheckContext.prepared(db, Thresholds()))
    assert "lane default" in finding.what
    assert "task 'charge' is not registered" in finding.what


def test_a_task_that_sleeps_after_it_was_put_off_is_not_stuck(engine, db):
    freeze(db)
    app = App().bind(engine)
    engine.create_execution("default", execution_kind="nap")
    drain(app, db)
    assert [row[0] for row in stuck(db)] == ["put_off"]

    @app.task()
    def nap(ctx: Ctx) -> None:
        ctx.sleep(60_000)

    advance(db, 1000)
    assert len(drain(app, db).paused) == 1
    assert stuck(db) == []


def test_put_offs_have_a_cap(engine, db):
    engine.create_execution(
        "default", execution_kind="charge", payload=b"7", policy={"retry_policy": {"max_retries": 5}}
    )
    app = changed_payload(engine)
    app.max_put_offs = 3
    for _ in range(3):
        assert len(drain(app, db).put_off) == 1
        advance(db, DAY)
    (made,) = drain(app, db).failed
    found = engine.get_execution_result(made)
    assert found.failure_category == "cannot_run"
    assert found.failure_reason.startswith("put off 3 times: the payload does not fit the task")


@pytest.mark.parametrize("is_async", [False, True])
def test_progress_that_the_task_reports_does_not_start_the_put_offs_anew(engine, db, is_async):
    app = App(max_put_offs=3).bind(engine)

    @app.task()
    def plain(ctx: Ctx) -> None:
        ctx.progress(1, "starting")
        ctx.progress(2, "importing")
        raise ImportError("no module")

    @app.task()
    async def coroutine(ctx: AsyncCtx) -> None:
        await ctx.progress(1, "starting")
        await ctx.progress(2, "importing")
        raise ImportError("no module")

    freeze(db)
    handle = (coroutine if is_async else plain).enqueue()
    for n in range(3):
        assert len(drain(app, db).put_off) == 1
        found = handle.describe()
        assert found.progress_message.startswith(f"put off {n + 1} times: ImportError: no module")
        assert found.delay_until_ms - engine.now_ms() == 1000 * 2**n
        advance(db, 1000 * 2**n)
    assert drain(app, db).failed == [handle.execution_id]


def test_a_deadline_ends_what_is_put_off(engine, db):
    made = engine.create_execution(
        "default", execution_kind="charge", policy={"timeout_policy": {"execution_deadline_ms": 5000}}
    )
    app = without_the_task(engine)
    drain(app, db)
    advance(db, 5001)
    drain(app, db)
    assert engine.read_execution_state(made.execution_id).public_state == "expired"
