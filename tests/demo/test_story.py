"""The demo prints its steps, checks them, and fails if a check fails."""

import io
import os
import re
import subprocess
import sys

import pytest

from pyff.failure import Failure
from tests.sql import table, violations
from tools import demo
from tools.demo import story


@pytest.mark.slow("waits for real time")
def test_every_chapter_happens_and_can_be_looked_at_as_often_as_one_likes(db, dsn, monkeypatch):
    out = io.StringIO()
    played = demo.run(dsn, demo.Screen(out))
    said = out.getvalue()
    chapters = re.findall(r"^\d  (.*)$", said, re.M)
    assert [title.partition(":")[0] for title in chapters] == [
        "A flow",
        "A rate limit",
        "A stream, and a crash",
        "An approval",
        "A retry",
        "A budget of 3000 tokens",
        "The whole flow",
    ]
    assert "refused: stale_lease" in said or "refused: execution_not_active" in said
    assert "a forged token is refused: invalid_token" in said
    assert "accepted: resume_condition_satisfied" in said
    assert "\x1b" not in said
    assert played.seconds > 0
    for statement in re.findall(r"^   (select .*?;)$", said, re.M | re.S):
        db.execute(statement.replace("\n   ", "\n").encode()).fetchall()
    states = table(
        db,
        "select public_state, count(*) as n from ff_v_execution where namespace = %s group by 1 order by 1",
        played.namespace,
    )
    assert {row["public_state"]: row["n"] for row in states} == {"cancelled": 2, "completed": 11, "failed": 2}
    assert violations(db) == []
    # A second time, and what does not happen as told ends it.
    monkeypatch.setattr(story, "_refused", lambda engine, handle: "")
    again = io.StringIO()
    with pytest.raises(Failure, match="carl's late result was accepted"):
        demo.run(dsn, demo.Screen(again))
    assert "3  A stream, and a crash" in again.getvalue()


def test_colour_is_only_paint():
    plain, painted = io.StringIO(), io.StringIO()
    for screen in (demo.Screen(plain), demo.Screen(painted, colour=True)):
        screen.chapter("One")
        screen.good("so")
        screen.bad("not so")
        screen.words("a")
        screen.words(" b")
        screen.sql("select 1;", [("x",), ("1",)])
    assert "\x1b[" in painted.getvalue()
    assert re.sub(r"\x1b\[[\d;]*m", "", painted.getvalue()) == plain.getvalue()


def test_a_worker_process_ends_with_the_one_that_started_it(dsn, db):
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "tools.demo.worker", "nobody", "carl"],
        env={**os.environ, "PYFF_DSN": dsn},
        stdin=subprocess.PIPE,
    )
    child.stdin.close()
    assert child.wait(timeout=300) == 0
