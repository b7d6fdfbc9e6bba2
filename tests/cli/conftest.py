"""The command line in this process: what it prints, and its exit code."""

import io
import json
import sys
from dataclasses import dataclass

import pytest

from pyff.cli import main


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def objects(self):
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self):
        (only,) = self.objects
        return only


@pytest.fixture
def bare(capsys, monkeypatch):
    """Runs a command as it is given. text: its input."""

    def run(*args, text=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
        capsys.readouterr()
        try:
            code = main([str(arg) for arg in args])
        except SystemExit as left:
            code = left.code
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def pyff(bare, dsn):
    """Runs a command on this test's database; it must succeed unless `code` says otherwise (None: whatever)."""

    def run(*args, text="", code=0):
        said = bare(*args, "--dsn", dsn, text=text)
        assert code in (said.code, None), said
        if code:
            assert_one_line(said)
        return said

    return run


def assert_one_line(said):
    assert said.err.count("\n") == 1, said
    assert "Traceback" not in said.err
