"""Which tests run: what is marked slow, and why."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import DIRECTORIES, REASONS

ROOT = Path(__file__).parents[2]
SUITE = """
import pytest

def test_quick():
    pass

@pytest.mark.slow("{reason}")
def test_slow():
    pass
"""

pytestmark = pytest.mark.once


@pytest.fixture
def collect(tmp_path):
    """The names of the tests that run with these arguments, of two files alike."""
    (tmp_path / "conftest.py").write_text(
        "from tests import tiers\n"
        "pytest_addoption, pytest_configure = tiers.add_options, tiers.configure\n"
        "def pytest_collection_modifyitems(config, items):\n    tiers.select(config, items)\n"
    )

    def run(*arguments, reason="long run", code=0):
        for name in ("one", "other"):
            (tmp_path / f"test_{name}.py").write_text(SUITE.format(reason=reason))
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-c",
                "/dev/null",
                "--rootdir",
                ".",
                "--collect-only",
                "-q",
                *arguments,
            ],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return (
            done.stderr
            if code
            else [line.replace("test_", "") for line in done.stdout.splitlines() if "::" in line]
        )

    return run


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ((), ["one.py::quick", "other.py::quick"]),
        (("--slow",), ["one.py::slow", "other.py::slow"]),
        (("test_one.py", "test_other.py::test_quick"), ["one.py::quick", "one.py::slow", "other.py::quick"]),
        (("--all", "-k", "slow"), ["one.py::slow", "other.py::slow"]),
    ],
)
def test_the_arguments_select(collect, arguments, found):
    assert collect(*arguments) == found


def test_another_reason_is_rejected(collect):
    assert "not a reason to be slow: 'it is slow'" in collect(reason="it is slow", code=4)


def test_every_directory_with_marks_exists_and_every_reason_is_given():
    tests = ROOT / "tests"
    assert [name for name in DIRECTORIES if not any((tests / name).glob("test_*.py"))] == []
    text = "".join(path.read_text() for path in tests.glob("*/test_*.py"))
    assert [reason for reason in REASONS if f'pytest.mark.slow("{reason}")' not in text] == []
