"""A checkout for every test, and a fake Python, to test the logic of the shell scripts."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
REAL = getattr(sys, "_base_executable", None) or sys.executable

# Logs what it is asked to do; FAKE_* in the environment tell it how to fail.
FAKE = f"""#!/bin/sh
case "$*" in
    *cache_tag*) echo "${{FAKE_TAG:-cpython-399-fake}}" ;;
    *ensurepip*) echo "ok $0" ;;
    *fcntl*) exec '{REAL}' "$@" ;;
    '-m venv '*)
        echo venv >> "$FAKE_LOG"
        [ -z "${{FAKE_VENV_SAYS:-}}" ] || {{ echo "$FAKE_VENV_SAYS"; exit 1; }}
        mkdir -p "$3/bin" "$3/site" && cp "$0" "$3/bin/python" ;;
    *'-m pip '*)
        echo "pip $*" >> "$FAKE_LOG"
        [ -z "${{PIP_USER+set}}${{PYTHONPATH+set}}" ] || exit 9
        [ -z "${{FAKE_GATE:-}}" ] || cat "$FAKE_GATE"
        [ -z "${{FAKE_PIP_SAYS:-}}" ] || {{ echo "$FAKE_PIP_SAYS" >&2; exit 1; }} ;;
    *'find_spec("psycopg")'*) [ -z "${{FAKE_IMPORT_SAYS:-}}" ] || {{ echo "$FAKE_IMPORT_SAYS" >&2; exit 1; }} ;;
    *purelib*) echo "${{0%/bin/python}}/site" ;;
    *) echo "ran $*" ;;
esac
"""


class Checkout:
    """A copy of the two commands and what they need, in a path with a space."""

    def __init__(self, path: Path, python: Path) -> None:
        self.path = path
        self.log = python.with_name("log")
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHON": str(python),
            "FAKE_LOG": str(self.log),
            "HOME": str(path.parent),
        }
        path.mkdir()
        for command in ("demo", "test"):
            shutil.copy(REPOSITORY / command, path)
        shutil.copytree(REPOSITORY / "requirements", path / "requirements")

    def start(self, command: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.path / command, *arguments],
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str, *arguments: str, **environment: str) -> str:
        """What the command prints; it must succeed."""
        process = self.start(command, *arguments, **environment)
        out, err = process.communicate(timeout=90)
        assert process.returncode == 0, err
        return out

    def fail(self, command: str = "demo", **environment: str) -> str:
        """The one message with which the command fails."""
        process = self.start(command, **environment)
        out, err = process.communicate(timeout=90)
        assert process.returncode != 0
        assert out == ""
        message = re.sub(r"\Apyff: preparing .*\n", "", err)
        assert message.startswith("pyff: ")
        assert message.count("pyff: ") == 1, message
        return message

    def done(self) -> list[str]:
        """The calls of the fake Python since the last check: venv, pip."""
        asked = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.write_text("")
        return [line.split()[0] for line in asked]


@pytest.fixture
def fake_python(tmp_path: Path) -> Path:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(FAKE)
    python.chmod(0o755)
    return python


@pytest.fixture
def checkout(tmp_path: Path, fake_python: Path) -> Checkout:
    return Checkout(tmp_path / "a checkout", fake_python)


@pytest.fixture
def python_that(tmp_path: Path) -> Callable[..., Path]:
    """A real Python that reports wrong facts about itself."""

    def make(name: str, belief: str) -> Path:
        python = tmp_path / "other" / name
        python.parent.mkdir(exist_ok=True)
        program = f"import sys; {belief}; exec(sys.argv[1])"
        python.write_text(f"#!/bin/sh\nexec '{REAL}' -I -c '{program}' \"$3\"\n")
        python.chmod(0o755)
        return python

    return make
