"""Not collected by default. Runs until it is killed, see test_killed_runs.py."""

import os
import time
from pathlib import Path

import psycopg


def test_that_never_ends(tmp_path: Path) -> None:
    with psycopg.connect(os.environ["PYFF_TEST_DSN"]) as connection:
        ready = Path(os.environ["HANGING_READY"])
        written = ready.with_suffix(".new")
        written.write_text(connection.info.host)
        written.rename(ready)  # a reader that sees the file reads all of it
        time.sleep(600)


def test_that_never_ends_either() -> None:
    time.sleep(600)
