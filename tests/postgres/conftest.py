"""Servers of their own: every test gets a base directory that the server's account can reach."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pyff.postgres import find, postmaster, start, stop
from tests.postgres.helpers import Run

OURS = ("PYFF_DSN", "PYFF_HOME", "PYFF_PG_PORT", "PYFF_PG_USER")


@contextmanager
def fresh_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    binaries = find()
    # Not tmp_path, which is closed to other accounts; in memory, because fsync is on and not what is tested.
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp"  # noqa: S108
    directory = Path(tempfile.mkdtemp(prefix="pyff-test-", dir=parent))
    directory.chmod(0o755)
    if binaries.source == "embedded":  # spare it the unpacking
        tree = binaries.bindir.parent
        (directory / tree.name).symlink_to(tree)
    monkeypatch.setenv("PYFF_HOME", str(directory))
    yield directory
    for data in directory.rglob("pg-*/data"):
        postmaster.stop(data, postmaster.IMMEDIATE)
    shutil.rmtree(directory)


@pytest.fixture
def empty_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """PYFF_HOME without a cluster, as at the very first start."""
    with fresh_home(monkeypatch) as directory:
        yield directory


@pytest.fixture(scope="session")
def cluster_copy() -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as monkeypatch, fresh_home(monkeypatch) as directory:
        start()
        stop()
        (made,) = directory.glob("pg-*/")
        yield made


@pytest.fixture
def home(empty_home: Path, cluster_copy: Path) -> Path:
    """PYFF_HOME with a stopped server in it. Nothing runs there after the test."""
    subprocess.run(["cp", "-a", cluster_copy, empty_home], check=True)
    return empty_home


@pytest.fixture
def python() -> Iterator[Run]:
    """Starts a Python on the given program, with pipes; killed at the end if need be."""
    started: list[subprocess.Popen[str]] = []

    def run(program: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen([sys.executable, "-c", program, *arguments], **{**pipes, **options}))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()
