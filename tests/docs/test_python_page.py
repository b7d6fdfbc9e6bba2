"""The page on tasks and workers, and the example: their code runs."""

import os
import re
import subprocess
import sys

import pytest

from tests.docs.test_documents import ROOT, blocks

PAGE = ROOT / "docs" / "python.md"


@pytest.fixture
def run(dsn, tmp_path):
    """Runs a program in a directory that has the page's first module."""
    (tmp_path / "shop.py").write_text(blocks(PAGE, "python")[0])

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            env={**os.environ, "PYFF_DSN": dsn, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_first_tour_runs(run):
    assert run("-c", blocks(PAGE, "python")[1]) == "duplicate Receipt(number='R-17')\n"


def test_the_tour_of_approvals_runs(run):
    (tour,) = [block for block in blocks(PAGE, "python") if "send_signal" in block]
    assert run("-c", tour) == "Receipt(number='R-19')\n"


@pytest.mark.parametrize("program", blocks(PAGE, "python"))
def test_every_program_runs(run, program):
    """By itself, in the order of the page or any other."""
    run("-c", program)


def test_the_task_with_a_budget_stops_where_the_page_says(run):
    (program,) = [block for block in blocks(PAGE, "python") if "ctx.usage(" in block]
    call = """
import os, psycopg, pyff
from pyff.testing import drain
with psycopg.connect(os.environ["PYFF_DSN"], autocommit=True) as conn, pyff.Engine(conn) as engine:
    engine.create_budget("team", ["tokens"], [10], [0])
    enough, too_much = prompts.enqueue(["four", "four"], conn=conn), prompts.enqueue(["four"], conn=conn)
    drain(app, conn)
    print(enough.result(0), too_much.describe().failure_reason)
"""
    assert run("-c", program + call) == "2 tokens used up\n"


def test_the_payload_of_the_page_fits_its_task(db, run, dsn):
    (statement,) = blocks(PAGE, "sql")
    assert db.execute(statement).fetchone() == ("created", "waiting")
    run("-c", "import os, psycopg; from shop import app; from pyff.testing import drain\n"
        "with psycopg.connect(os.environ['PYFF_DSN'], autocommit=True) as c: drain(app, c, reraise=True)")  # fmt: skip
    assert db.execute("select public_state from ff_exec_core").fetchone() == ("completed",)


def test_the_methods_of_the_page_exist():
    from pyff import AsyncCtx, Ctx

    said = set(re.findall(r"ctx\.(\w+)", PAGE.read_text()))
    assert {name for name in said if not hasattr(Ctx, name) or not hasattr(AsyncCtx, name)} == set()
    public = {name for name in vars(Ctx) if not name.startswith("_")}
    assert public - said <= {"attempt", "resumed", "lane", "tags", "flow_id"}


def test_the_fixtures_of_the_page_exist():
    from pyff.testing import plugin

    for name in re.findall(r"^\| `(pyff_\w+)`", PAGE.read_text(), re.M):
        assert hasattr(plugin, name)


def test_the_shop_runs(run):
    said = run(str(ROOT / "examples" / "shop.py")).splitlines()
    assert said == [
        "small order: parcel 1-0, parcel 1-1",
        "large order: parcel 2-0, parcel 2-1",
        "charges: 2",
    ]
