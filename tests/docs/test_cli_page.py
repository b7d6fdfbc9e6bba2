"""The page on the command line: its commands run, its tables are complete."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from string import Template

import pytest

from pyff.cli import COMMANDS, exits, main
from pyff.doctor import CHECKS, DEEP
from tests.docs.test_documents import ROOT, blocks
from tests.sql import create, rows, take
from tests.suspensions.support import suspended

PAGE = ROOT / "docs" / "cli.md"
TEXT = PAGE.read_text()


@pytest.fixture
def shell(dsn, tmp_path, monkeypatch, capsys):
    """Runs the lines of a block: plain commands in this process, pipelines in a shell in which `pyff` is this one."""
    monkeypatch.setenv("PYFF_DSN", dsn)
    (tmp_path / "pyff").write_text(f'#!/bin/sh\nexec {sys.executable} -m pyff "$@"\n')
    if shutil.which("jq") is None:
        read = "import json, sys; [print(json.loads(line)[sys.argv[2][1:]]) for line in sys.stdin]"
        (tmp_path / "jq").write_text(f"#!/bin/sh\nexec {sys.executable} -c '{read}' \"$@\"\n")
    for program in tmp_path.iterdir():
        program.chmod(0o755)

    def pipeline(line, variables):
        done = subprocess.run(
            ["sh", "-c", line],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                **variables,
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
        return done.stdout

    def command(line, variables):
        program, *words = shlex.split(Template(line).safe_substitute(variables), comments=True)
        assert program == "pyff", line
        code = main(words)
        said = capsys.readouterr()
        assert code == 0, (line, said)
        return said.out

    def run(block, **variables):
        lines = [line for line in block.splitlines() if line]
        return "".join((pipeline if "|" in line else command)(line, variables) for line in lines)

    return run


def test_the_commands_of_the_page_run(db, shell):
    install, *rest = blocks(PAGE, "sh")
    rows(db, "ff_tick")  # the database is a copy of one that may be old
    installed = shell(install)
    create(db, "stream")
    claim = take(db, "stream")
    waiting, _ = suspended(db)
    ids = {"EXECUTION": claim["execution_id"], "SUSPENDED": waiting["execution_id"]}
    said = [shell(block, **ids) for block in rest]
    look, operate, *_ = said
    assert "rotated: key-2 signs now" in installed
    assert "duplicate " in look
    assert "2 created, 0 duplicate" in look
    assert "accepted: resume condition satisfied" in operate
    assert "cancel: 3 of 3" in operate
    assert "replay: 3 of 3" in operate
    assert "cycles/s" in said[-1]
    assert rows(db, "ff_check_invariants") == []


def test_every_command_is_on_the_page():
    for name in COMMANDS:
        assert f"pyff {name}" in TEXT, name


def test_the_exit_codes_of_the_page_are_those_of_the_program():
    said = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.M)}
    assert said == {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}


def test_the_checks_of_the_page_are_those_of_doctor():
    table = TEXT[TEXT.index("| check | finds |") :]
    assert re.findall(r"^\| (\w+) \|", table, re.M)[1:] == [*CHECKS, *DEEP]
