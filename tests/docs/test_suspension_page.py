"""The page on suspension: its commands run, its conditions are accepted."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.docs.test_documents import ROOT, blocks
from tests.sql import table
from tests.suspension.support import suspended

PAGE = ROOT / "docs" / "suspension.md"


def test_the_psql_tour_runs_in_psql(db, dsn, server_bindir):
    tour, keys = blocks(PAGE, "sql")
    version = subprocess.run(
        [server_bindir / "psql", "--version"], capture_output=True, text=True, check=True
    )
    if int(re.search(r" (\d+)", version.stdout)[1]) < 16:  # \bind came with 16
        tour = tour.replace("$1, $2, $3", ":'execution_id', :'waitpoint_id', :'waitpoint_token'")
        tour = tour.replace("\\bind :execution_id :waitpoint_id :waitpoint_token\n\\g", ";")
    run = subprocess.run(
        [server_bindir / "psql", "-X", "-v", "ON_ERROR_STOP=1", "-A", "-t", dsn],
        input=tour + keys,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()
    assert "accepted|resume_condition_satisfied|t|resumable" in said
    assert "approve|fine" in said
    assert "completed" in said
    assert any(line.startswith("rotated|key-1|key-2|") for line in said)
    assert table(db, "select attempt_index, lease_epoch from ff_attempt") == [
        {"attempt_index": 0, "lease_epoch": 2}
    ]


def test_the_python_tour_runs(dsn):
    (tour,) = blocks(PAGE, "python")
    run = subprocess.run(
        [sys.executable, "-c", tour],
        env={**os.environ, "PYFF_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "approved already: ['approve']\n"


@pytest.mark.parametrize("line", [line for line in blocks(PAGE, "json")[0].splitlines() if line])
def test_the_conditions_of_the_page_are_accepted(db, line):
    suspended(db, json.loads(line), timeout_ms=1000)
