"""`pyff demo` as a command: the server it uses, and its output for programs."""

import argparse
import re
import tempfile
from pathlib import Path

import pytest

from pyff import postgres
from pyff.cli.demo import _database
from tools import demo


@pytest.fixture
def home(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="pyff-test-", dir="/tmp") as home:  # a short path, for the socket
        Path(home).chmod(0o755)
        monkeypatch.delenv("PYFF_DSN", raising=False)
        monkeypatch.setenv("PYFF_HOME", home)
        yield
        postgres.stop()


@pytest.mark.slow("waits for real time")
def test_the_server_stays_if_it_is_to_be_kept_and_ends_if_it_was_started_for_the_story(home):
    with _database(argparse.Namespace(dsn=None, keep=True)) as kept:
        assert postgres.status().dsn == kept
    assert postgres.status().dsn == kept
    with _database(argparse.Namespace(dsn=None, keep=False)) as again:
        assert again == kept
    assert postgres.status().dsn == kept, "it was running before"
    postgres.stop()
    with _database(argparse.Namespace(dsn=None, keep=False)):
        assert postgres.status().dsn
    assert postgres.status().dsn is None


@pytest.mark.slow("waits for real time")
def test_what_is_advised_needs_nothing_but_pyff(home, bare, monkeypatch):
    """A machine that has only Python has no psql; `pyff sql` brings its own."""
    monkeypatch.setattr(demo, "run", lambda dsn, screen: demo.Story("demo-7", "7", 9.5))
    monkeypatch.setenv("PATH", "/nowhere")
    advised = bare("server", "start").out.splitlines()[1:]
    assert [line.split()[0] for line in advised] == ["pyff", "pyff"]
    running = re.search(r"^look further:\n  (.*)$", bare("demo").out, re.M)[1]
    assert running.endswith("pyff sql")
    assert postgres.stop()
    ended = re.search(r"^look further:\n  (.*)$", bare("demo").out, re.M)[1]
    assert ended == "./demo --keep leaves the server running and says how to connect"


def test_the_demonstration_tells_programs_where_to_look(pyff, monkeypatch):
    """The story itself: tests/demo."""
    told = demo.Story("demo-7", "018f3a2e-7b6c-7d1e-9f00-aabbccddee07", 9.5)
    monkeypatch.setattr(demo, "run", lambda dsn, screen: told)
    assert pyff("demo", "--json").object == {
        "namespace": told.namespace,
        "flow_id": told.flow_id,
        "seconds": told.seconds,
    }
    said = pyff("demo").out
    assert said.startswith("database ready: schema version ")
    assert "where namespace = 'demo-7'" in said
    assert re.search(r"^look further:\n  .* sql --dsn \.\.$", said, re.M), "its server is there still"
