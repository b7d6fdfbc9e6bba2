"""Not collected by default. Runs until it is killed, see test_killed_runs.py."""

import os
import time
from pathlib import Path

import psycopg


def test_that_never_ends(tmp_path: Path) -> None:
    with psycopg.connect(os.environ["PYFF_TEST_DSN"]) as connection:
        print(connection.info.host)
        Path(os.environ["HANGING_READY"]).write_text(connection.info.host)
        time.sleep(600)


def test_that_never_ends_either() -> None:
    time.sleep(600)
