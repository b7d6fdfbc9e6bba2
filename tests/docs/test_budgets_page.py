"""The page on budgets: its commands run and print what the page shows."""

import os
import re
import subprocess
import sys

from tests.docs.test_documents import ROOT, blocks
from tests.sql import table

PAGE = ROOT / "docs" / "budgets.md"


def test_the_psql_tour_runs_in_psql(dsn, server_bindir):
    run = subprocess.run(
        [server_bindir / "psql", "-X", "-v", "ON_ERROR_STOP=1", "-A", "-t", dsn],
        input="\n".join(blocks(PAGE, "sql")),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[1:] == [
        "attached",
        "ok|t",
        "already_applied|t",
        "soft_breach|tokens|85000|80000",
        "hard_breach|f|85000|100000",
        "cents|30|500|f",
        "tokens|85000|100000|f",
        "t|1|tokens",
        "reset",
        "created",
        "ok",
        "hard_breach",
        "cancelled",
        "1",
        "ok",
    ]


def test_the_python_runs(dsn):
    (program,) = blocks(PAGE, "python")
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYFF_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "stopped at call 4: 900 of 1000 used\n"


def test_the_outcomes_and_actions_are_those_of_the_functions(db):
    query = "select obj_description(oid, 'pg_proc') as text from pg_proc where proname = %s"
    text = PAGE.read_text()
    (report,) = table(db, query, "ff_report_usage")
    listed = re.search(r"outcome = (.*)", report["text"])[1].split(" | ")
    assert list(dict.fromkeys(re.findall(r"^\| (\w+) \| (?:yes|no|earlier) \|", text, re.M))) == listed
    (status,) = table(db, query, "ff_get_budget_status")
    actions = re.search(r"on_hard_limit = (.*)", status["text"])[1].split(" | ")
    assert re.findall(r"^\| (\w+) \| ", text.partition("| p_on_hard_limit |")[2], re.M) == actions
