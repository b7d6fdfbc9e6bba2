"""Types of tasks: a small program of a user, under mypy --strict."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")

PROGRAM = """
import dataclasses
from typing import assert_type

import psycopg

import pyff
from pyff import App, AsyncCtx, AsyncEngine, AsyncHandle, Backoff, Child, Ctx, Engine, Fail, Handle, PublicState, Signal
from pyff import CursorMoved, Failure, TaskFailed, Token, Worker
from pyff.app.run import Run
from pyff.testing import advance, drain

app = App(lane="shop")


@dataclasses.dataclass
class Order:
    id: int


@dataclasses.dataclass
class Receipt:
    total: float


@app.task("charge", lane="billing", retry=Backoff(max=5, base_ms=500), timeout_ms=60_000, needs={"gpu"})
def charge(ctx: Ctx, order: Order) -> Receipt:
    total = ctx.step("quote", price, order)
    assert_type(total, float)
    if total > 1000:
        ok = ctx.wait("approval", signals={"approve", "reject"}, timeout_ms=1000, on_token=mail)
        assert_type(ok, Signal)
        if ok.name == "reject":
            raise Fail("rejected", retryable=False)
    ctx.usage("team", {"usd_micros": 1200})
    ctx.emit(b"chunk")
    child = ctx.spawn(add, 1, 2)
    assert_type(child, Child[int])
    assert_type(ctx.gather(child), list[int])
    assert_type(ctx.settle(child), list[int | TaskFailed])
    other = ctx.spawn(charge, order)
    assert_type(ctx.gather(child, other), list[int | Receipt])
    assert_type(ctx.gather(child, child), list[int])
    assert_type(ctx.settle(child, other, child), list[int | Receipt | TaskFailed])
    mixed = [child, other]
    assert_type(ctx.gather(*mixed), list[object])
    return Receipt(total)


@app.task()
async def fetch(ctx: AsyncCtx, url: str, tries: int) -> bytes:
    assert_type(await ctx.step("get", get, url), bytes)
    assert_type(await ctx.step("length", len, url), int)
    child, other = await ctx.spawn(add, 1, 2), await ctx.spawn(ping)
    assert_type(await ctx.gather(child, other), list[int | None])
    assert_type(await ctx.settle(child, other), list[int | TaskFailed | None])
    return await ctx.step("again", get, url)


@app.task()
def add(a: int, b: int) -> int:
    return a + b


@app.task()
async def ping() -> None: ...


async def get(url: str) -> bytes:
    return url.encode()


def price(order: Order) -> float:
    return order.id * 2.0


def mail(token: Token) -> None:
    print(token.url_param)


def submit(dsn: str) -> Receipt:
    with psycopg.connect(dsn) as c, c.transaction():
        handle = charge.enqueue(Order(1), key="order-1", conn=c)
    assert_type(handle, Handle[Receipt])
    assert_type(handle.state(), PublicState)
    many = add.using(priority=5).enqueue_many([(1, 2), (3, 4)], conn=Engine(dsn))
    assert_type(many[0].result(timeout=30), int)
    assert_type(add(1, 2), int)
    handle.cancel("user")
    return handle.result(timeout=30)


def told(error: Failure | CursorMoved) -> str:
    return error.hint


async def submit_async(engine: AsyncEngine) -> None:
    handle = await fetch.aenqueue("url", 3, conn=engine)
    assert_type(handle, AsyncHandle[bytes])
    assert_type(await handle.result(), bytes)
    await ping.aenqueue()
    await ping()


class Notes:
    def claimed(self, run: Run) -> None: ...

    def finished(self, run: Run) -> None:
        assert_type(run.outcome, str)
        assert_type(run.error, BaseException | None)
        if run.interrupt is not None:
            assert_type(run.interrupt(run), None)


def operate(dsn: str, conn: psycopg.Connection[tuple[object, ...]]) -> None:
    worker = Worker(app, dsn, lanes={"billing": 3, "shop": 1}, slots=16, capabilities={"gpu"}, observers=[Notes()])
    assert_type(worker.health().running, int)
    assert_type(drain(app, conn).completed, list[str])
    advance(conn, 1000)
    pyff.send_signal("token", "approve", {"by": "ann"}, conn=dsn)


def mistakes(dsn: str, ctx: Ctx) -> None:
    charge.enqueue(5)  # error: not an Order
    charge.enqueue()  # error: an argument is missing
    add.enqueue(1, "2")  # error: not an int
    add.enqueue(1, 2, kee="a")  # error: no such option
    add.enqueue_many([(1,)])  # error: an argument is missing
    add.enqueue(1, 2).result().upper()  # error: an int has no upper
    fetch.enqueue("url")  # error: an argument is missing
    ctx.step("quote", price, 5)  # error: not an Order
    ctx.spawn(add, 1)  # error: an argument is missing
    ctx.wait("approval", on_timeout="explode")  # error: no such behaviour
    Worker(app, dsn, slot=1)  # error: no such option
"""


def test_a_users_program_is_found_correct_and_its_mistakes_are_found(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--hide-error-context"]
    done = subprocess.run(
        [*command, "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "program.py")],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if ": error:" in line]
    errors = {int(line.split(":")[1]): line for line in found}
    assert all("program.py" in line for line in found), done.stdout
    mistakes = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# error" in line}
    assert errors.keys() - mistakes == set(), done.stdout + done.stderr
    assert mistakes - errors.keys() == set(), done.stdout
