"""The testing kit: draining, the clock, and the plugin in a user's own suite."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import scalar_row

from pyff import App, AsyncCtx, Ctx, Engine, Fixed, TaskFailed, WaitTimeout
from pyff.testing import advance, drain, freeze, unfreeze

ROOT = Path(__file__).parents[2]


@pytest.fixture
def app():
    return App()


def test_everything_can_happen_inside_a_transaction_that_is_rolled_back(app, dsn):
    @app.task()
    def child(n: int) -> int:
        return n

    @app.task(retry=Fixed(max=1, delay_ms=0))
    def parent(ctx: Ctx) -> int:
        if ctx.attempt == 0:
            raise OSError
        return sum(ctx.gather(ctx.spawn(child, 1), ctx.spawn(child, 2)))

    @app.task()
    async def later(ctx: AsyncCtx) -> str:
        await ctx.sleep(60_000)
        return "slept"

    with psycopg.connect(dsn) as mine:
        handle, other = parent.enqueue(conn=mine), later.enqueue(conn=mine)
        report = drain(app, mine)
        assert (len(report.completed), len(report.retried)) == (3, 1)
        assert set(report.paused) == {handle.execution_id, other.execution_id}
        advance(mine, 60_000)
        assert drain(app, mine).completed == [other.execution_id]
        stored = mine.execute(
            "select convert_from(result, 'UTF8') from ff.ff_attempt where result is not null"
        ).fetchall()
        assert sorted(stored) == [('"slept"',), ("1",), ("2",), ("3",)]
        mine.rollback()
        assert mine.execute("select count(*) from ff.ff_exec_core").fetchone() == (0,)


def test_a_result_can_be_read_in_the_transaction_in_which_it_came_about(app, dsn):
    @app.task()
    def good(n: int) -> int:
        return n

    @app.task()
    async def bad() -> None:
        raise LookupError("here")

    with psycopg.connect(dsn) as mine:
        one, other = good.enqueue(1, conn=mine), bad.enqueue(conn=mine)
        with pytest.raises(ValueError, match="commit first"):
            one.result(0)
        drain(app, mine)
        assert one.result(0) == 1
        with pytest.raises(TaskFailed, match="here"):
            other.result()
        mine.rollback()


def test_a_call_that_is_refused_does_not_spoil_the_transaction(app, dsn):
    @app.task()
    def careful(ctx: Ctx) -> str:
        try:
            ctx.emit(b"x", type="NOT A TYPE")
        except ValueError:
            return "no"
        except Exception as error:
            return type(error).__name__
        return "?"

    with psycopg.connect(dsn) as mine:
        careful.enqueue(conn=mine)
        drain(app, mine, reraise=True)
        assert mine.execute("select convert_from(result, 'UTF8') from ff.ff_attempt").fetchone() == (
            '"InvalidFrameType"',
        )


def test_reraise_shows_what_a_task_raised(app, db, dsn):
    @app.task()
    def bad() -> None:
        raise LookupError("here")

    with Engine(dsn) as engine:
        bad.enqueue(conn=engine)
        with pytest.raises(LookupError, match="here"):
            drain(app, db, reraise=True)
        bad.enqueue(conn=engine)
        report = drain(app, db)
    assert (report.runs, len(report.failed), [str(e) for e in report.errors]) == (1, 1, ["here"])


def test_a_task_that_never_comes_to_rest_is_told(app, db, dsn):
    @app.task(retry=Fixed(max=1000, delay_ms=0))
    def restless() -> None:
        raise OSError

    with Engine(dsn) as engine:
        restless.enqueue(conn=engine)
    with pytest.raises(RuntimeError, match="work is left after 20 runs, the last one of 'restless'"):
        drain(app, db, most=20)


def test_a_result_above_the_limit_fails_the_task_for_good(app, db, dsn):
    @app.task(retry=Fixed(max=3, delay_ms=0))
    def large() -> bytes:
        return bytes(2000)

    db.execute("select ff_set_setting('max_execution_bytes', '1024')")
    with Engine(dsn) as engine:
        handle = large.enqueue(conn=engine)
        report = drain(app, db)
        assert (report.completed, report.failed) == ([], [handle.execution_id])
        assert [type(error).__name__ for error in report.errors] == ["PayloadTooLarge"]
        assert engine.describe_execution(handle.execution_id).failure_category == "invalid_result"


def test_what_the_app_does_not_know_is_reported(app, db, dsn):
    with Engine(dsn) as engine:
        made = engine.create_execution("default", execution_kind="stranger")
    assert drain(app, db).put_off == [made.execution_id]


def test_needs_are_met_unless_capabilities_say_otherwise(app, db, dsn):
    @app.task(needs={"gpu"})
    def render() -> None: ...

    with Engine(dsn) as engine:
        render.enqueue(conn=engine)
    assert drain(app, db, capabilities=()).runs == 0
    assert drain(app, db).runs == 1


@pytest.mark.parametrize("autocommit", [True, False])
def test_what_only_maintenance_moves_is_moved_when_its_time_has_come(app, db, dsn, autocommit):
    @app.task()
    def waiting(ctx: Ctx) -> str:
        try:
            ctx.wait("word", timeout_ms=60_000)
        except WaitTimeout:
            return "too late"
        return "?"

    @app.task(deadline_ms=60_000)
    def late(ctx: Ctx) -> None:
        ctx.sleep(120_000)

    @app.task(timeout_ms=60_000)
    def stuck(ctx: Ctx) -> None:
        ctx.wait("word", timeout_ms=120_000, on_timeout="fail")

    with psycopg.connect(dsn, autocommit=autocommit) as mine:
        waits, expires, fails = (task.enqueue(conn=mine) for task in (waiting, late, stuck))
        assert len(drain(app, mine).paused) == 3
        advance(mine, 60_000)
        assert drain(app, mine).completed == [waits.execution_id]
        assert (waits.result(0), expires.state(), fails.state()) == ("too late", "expired", "suspended")
        advance(mine, 60_000)
        assert drain(app, mine).runs == 0
        assert fails.state() == "failed"


def test_a_task_may_take_long_without_losing_its_lease(app, db):
    """A worker would renew it. The clock stands for the work, or for a debugger."""

    @app.task()
    def slow() -> str:
        advance(db, 3_600_000)
        return "done"

    handle = slow.enqueue(conn=db)
    report = drain(app, db, most=3, reraise=True)
    assert (report.runs, report.completed) == (1, [handle.execution_id])


def test_results_are_kept_however_far_the_clock_is_moved(app, db):
    @app.task()
    def work() -> int:
        return 1

    handle = work.enqueue(conn=db)
    drain(app, db)
    advance(db, 10 * 365 * 86_400_000)
    drain(app, db)
    assert handle.result(0) == 1


async def test_an_async_test_can_drain_async_tasks(app, db, dsn):
    @app.task()
    async def work(ctx: AsyncCtx) -> None:
        await ctx.progress(1)

    with Engine(dsn) as engine:
        work.enqueue(conn=engine)
    assert len(drain(app, db, reraise=True).completed) == 1


def test_the_clock_can_be_moved_stopped_and_released(db):
    real = db.execute("select ff_now_ms()").fetchone()[0]
    ahead = advance(db, 3_600_000)
    assert 3_600_000 <= ahead - real < 3_660_000
    assert advance(db, 3_600_000) - ahead >= 3_600_000
    assert freeze(db, 5_000) == 5_000
    assert advance(db, 10) == 5_010
    assert db.execute("select ff_now_ms()").fetchone()[0] == 5_010
    unfreeze(db)
    assert abs(db.execute("select ff_now_ms()").fetchone()[0] - real) < 60_000


def test_the_clock_is_moved_in_the_schema_of_the_engine(db, connect):
    """And not in the user's own, which may come first."""
    db.execute("create schema mine")
    mine = connect(row_factory=scalar_row)
    mine.execute("set search_path = mine, public")
    start = freeze(mine)
    assert advance(mine, 1000) == start + 1000
    assert db.execute("select ff_now_ms()").fetchone() == (start + 1000,)
    unfreeze(mine)
    assert db.execute("select count(*) from pg_proc where proname = 'ff_now_ms'").fetchone() == (1,)


SUITE = """
import psycopg
import pytest
from shop import app, charge

@pytest.fixture(scope="session")
def pyff_prepare():
    def prepare(dsn):
        with psycopg.connect(dsn) as conn:
            conn.execute("create table orders (id int)")
    return prepare

@pytest.mark.parametrize("again", [1, 2])
def test_charging_waits_a_day(pyff_kit, again):
    with pyff_kit.conn.transaction():
        pyff_kit.conn.execute("insert into orders values (1)")
        handle = charge.enqueue(1, key="order-1", conn=pyff_kit.conn)
    assert handle.outcome == "created"
    pyff_kit.drain(app)
    assert handle.state() == "delayed"
    pyff_kit.advance(86_400_000)
    pyff_kit.drain(app)
    assert handle.result(0) == "charged"
    assert pyff_kit.conn.execute("select count(*) from orders").fetchone() == (1,)

def test_an_engine_of_its_own(pyff_dsn, pyff_kit):
    assert pyff_kit.engine.ping().ok
"""

SHOP = """
import pyff
app = pyff.App()

@app.task()
def charge(ctx: pyff.Ctx, order: int) -> str:
    ctx.sleep(86_400_000)
    return "charged"
"""


def test_the_plugin_serves_a_users_own_suite(tmp_path):
    (tmp_path / "test_shop.py").write_text(SUITE)
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["pyff.testing.plugin"]\n')
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
