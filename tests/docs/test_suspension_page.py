"""The page on suspension: its command runs, its conditions are accepted, its SQL has the described result."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks, run_psql, run_shell
from tests.sql import one, table
from tests.suspensions.support import suspended

PAGE = ROOT / "docs" / "suspension.md"


def test_the_psql_tour_goes_on_with_the_same_attempt(db, dsn, server_bindir):
    said = run_psql("".join(blocks(PAGE, "sql")), dsn, server_bindir).splitlines()
    assert "accepted|resume_condition_satisfied|t|resumable" in said
    assert "approve|fine" in said
    assert "completed" in said
    assert any(line.startswith("rotated|migrate|key-2|") for line in said)
    assert table(db, "select attempt_index, lease_epoch from ff_attempt") == [
        {"attempt_index": 0, "lease_epoch": 2}
    ]


@pytest.mark.parametrize("line", [line for line in blocks(PAGE, "json")[0].splitlines() if line])
def test_the_conditions_of_the_page_are_accepted(db, line):
    suspended(db, json.loads(line), timeout_ms=1000)


def test_the_command_delivers_the_signal(db, dsn, tmp_path):
    lease, point = suspended(db, timeout_ms=60_000)
    (tmp_path / "token-file").write_text(point["waitpoint_token"])
    (command,) = blocks(PAGE, "sh")
    environment = {
        "PATH": f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}",
        "PYFF_DSN": dsn,
        "EXECUTION_ID": lease["execution_id"],
        "WAITPOINT_ID": str(point["waitpoint_id"]),
    }
    run_shell(command, tmp_path, environment)
    state = one(db, "ff_read_execution_state", execution_id=lease["execution_id"])
    assert state["public_state"] == "resumable"
