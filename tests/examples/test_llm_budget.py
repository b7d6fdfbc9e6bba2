"""examples/llm_budget.py works as described."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sql import table, violations

EXAMPLE = Path(__file__).parents[2] / "examples" / "llm_budget.py"


@pytest.mark.own_session("a program that prepares statements")
@pytest.mark.no_serializable("its workers collide more often than a client tries again")
def test_the_example_stops_when_its_tokens_are_used_up(db, dsn):
    run = subprocess.run(
        [sys.executable, EXAMPLE],
        env={**os.environ, "PYFF_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    used, ended = run.stdout.splitlines()
    # A prompt costs 1000 or 1020 tokens: ten fit, an eleventh does not.
    assert 10_000 <= int(used.split()[0]) <= 10_200
    assert ended == "10 prompts answered, 30 cancelled"
    (flow,) = table(db, "select public_flow_state from ff_flow_core")
    assert flow["public_flow_state"] == "completed"
    assert violations(db) == []
