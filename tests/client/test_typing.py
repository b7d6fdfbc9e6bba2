"""What a type checker sees: a small program of a user's, under mypy --strict."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="mypy is not installed")

PROGRAM = """
from collections.abc import Mapping
from typing import Literal, assert_type

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

import pyff
from pyff import AsyncEngine, CheckInvariantsRow, ClaimRow, Contention, CreateExecutionResult, Engine
from pyff import JsonValue, PingResult, PublicState
from pyff.errors import StaleLease


def enqueue(dsn: str) -> str:
    with psycopg.connect(dsn, row_factory=dict_row) as conn, Engine(dsn) as engine:
        created = engine.create_execution("billing", payload=b"{}", tags={"app.env": "test"}, conn=conn)
        assert_type(created, CreateExecutionResult)
        assert_type(created.outcome, Literal["created", "duplicate"])
        assert_type(created.public_state, PublicState | None)
        engine.create_execution(lane_id="billing", policy={"retry": {"max_retries": 3, "on": ["timeout"]}})
        return created.execution_id


def look(pool: ConnectionPool) -> bool:
    engine = Engine(pool, prepare_threshold=None)
    assert_type(engine.now_ms(), int)
    assert_type(engine.check_invariants(limit=1), list[CheckInvariantsRow])
    try:
        assert_type(engine.ping(), PingResult)
    except StaleLease as error:
        assert_type(error.kind, str)
        assert_type(error.detail, dict[str, JsonValue])
    except Contention as error:
        return error.retryable
    return engine.create_execution("a").public_state is PublicState.WAITING


async def work(conn: psycopg.AsyncConnection[tuple[object, ...]], pool: AsyncConnectionPool) -> None:
    async with AsyncEngine(pool) as engine:
        assert_type(await engine.ping(conn=conn), PingResult)
        job = await engine.claim("billing", "w", "w-1", capabilities=["gpu"])
        assert_type(job, ClaimRow | None)
        if job is not None:
            assert_type(job.tags, Mapping[str, str])
            assert_type(job.payload, bytes | None)
            assert_type((await engine.complete(job.handle, result=b"")).replayed, bool)


def mistakes(engine: Engine, conn: psycopg.AsyncConnection) -> None:
    engine.claim(lane="billing")  # error: no such argument
    engine.claim("billing", "w", "w-1", ["gpu"])  # error: optional arguments have names
    engine.setting(1)  # error: not a text
    engine.ping(conn=conn)  # error: a connection of the other kind
    engine.ping().ok = False  # error: frozen
    engine.no_such_function()  # error: no such method
    pyff.no_such_name  # error: no such name
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """The lines that mypy complains about, with its words."""
    directory = tmp_path_factory.mktemp("program")
    (directory / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--hide-error-context"]
    done = subprocess.run(
        [*command, "--cache-dir", str(directory / "cache"), str(directory / "program.py")],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    found = [line.split(":", 2) for line in done.stdout.splitlines() if ": error:" in line]
    assert found, done.stdout + done.stderr
    return {int(number): words for _, number, words in found}


def test_a_users_program_is_found_correct_and_its_mistakes_are_found(errors):
    mistakes = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# error" in line}
    assert errors.keys() - mistakes == set(), errors
    assert mistakes - errors.keys() == set(), errors
