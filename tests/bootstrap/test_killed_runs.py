"""SIGKILL of a whole run, at any moment, leaves no server behind and does not disturb the next run."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.bootstrap.conftest import REPOSITORY
from tests.postgres.helpers import mentions, until

pytestmark = pytest.mark.slow("kills processes")


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The two commands with a base directory of their own, in the environment that these tests run in."""
    if not (Path(sys.prefix) / "pyff-venv").exists():
        pytest.skip("these tests do not run in an environment made by requirements/venv.sh (use ./test)")
    home = Path(tempfile.mkdtemp(prefix="pyff-test-", dir="/tmp"))
    home.chmod(0o755)
    ours = {"PYFF_HOME": str(home), "PYFF_VENV": sys.prefix, "TMPDIR": str(tmp_path)}
    yield {k: v for k, v in os.environ.items() if not k.startswith(("PYFF_", "PYTEST_"))} | ours
    shutil.rmtree(home)


def test_a_killed_demo_leaves_no_server_and_the_next_one_works(environment):
    home = environment["PYFF_HOME"]
    moments = [random.uniform(0.1, 3) for _ in range(5)]
    for moment in moments:
        demo = subprocess.Popen(
            [REPOSITORY / "demo"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with suppress(subprocess.TimeoutExpired):
            demo.wait(timeout=moment)
        demo.kill()
        demo.wait()
        until(lambda: not mentions(home), explain=lambda: (moments, mentions(home)))
    done = subprocess.run([REPOSITORY / "demo"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (moments, done.stderr)
    assert not mentions(home)


def test_a_killed_test_run_leaves_no_server_and_no_files(environment, tmp_path):
    ready = tmp_path / "ready"
    environment["HANGING_READY"] = str(ready)
    run = subprocess.Popen(
        [REPOSITORY / "test", "-q", "-n", "2", "tests/bootstrap/hanging.py"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(ready.exists)
        directory = Path(ready.read_text())
        assert directory.is_dir()
        run.kill()  # only the controller: the workers and the server have to notice
        until(lambda: not directory.exists() and not mentions(directory), explain=lambda: mentions(directory))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def test_an_interrupted_test_run_stops_its_server(environment, tmp_path):
    ready = tmp_path / "ready"
    environment["HANGING_READY"] = str(ready)
    run = subprocess.Popen(
        [REPOSITORY / "test", "-q", "tests/bootstrap/hanging.py"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - a background job ignores it
    )
    until(ready.exists)
    directory = Path(ready.read_text())
    assert directory.is_dir()
    os.killpg(run.pid, signal.SIGINT)
    run.wait(timeout=300)  # the test itself would take 600
    assert not directory.exists()
