"""`pyff server ...`"""

import argparse
import json
import os

import pytest

from pyff.cli import server
from pyff.failure import Failure
from tests.postgres.helpers import ask_psql


def pyff(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    server.register(parser.add_subparsers())
    args = parser.parse_args(["server", *arguments])
    return int(args.run(args))


def test_start_status_dsn_stop(home, capsys):
    assert pyff("status") == 3
    assert capsys.readouterr().out.startswith("not running")
    assert pyff("start") == 0
    assert "started" in capsys.readouterr().out
    assert pyff("start") == 0
    assert "already" in capsys.readouterr().out
    assert pyff("status") == 0
    assert str(home) in capsys.readouterr().out
    assert pyff("dsn") == 0
    dsn = capsys.readouterr().out.strip()
    assert ask_psql(dsn, "select 6 * 7") == "42"
    assert pyff("stop") == 0
    assert pyff("stop") == 0
    assert capsys.readouterr().out == "stopped\nwas not running\n"


def test_status_for_programs(home, capsys):
    assert pyff("status", "--json") == 3
    assert json.loads(capsys.readouterr().out)["running"] is False
    pyff("start")
    capsys.readouterr()
    assert pyff("status", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["running"] is True
    assert told["data"].startswith(str(home))


def test_start_dsn_and_stop_for_programs(home, capsys):
    pyff("start", "--json")
    started = json.loads(capsys.readouterr().out)
    assert started["started"] is True
    pyff("dsn", "--json")
    assert json.loads(capsys.readouterr().out) == {"dsn": started["dsn"]}
    pyff("stop", "--json")
    assert json.loads(capsys.readouterr().out) == {"stopped": True}


def test_dsn_starts_nothing(home):
    with pytest.raises(Failure, match="pyff server start"):
        pyff("dsn")


def test_a_password_in_pyff_dsn_is_shown_by_dsn_only(home, capsys, monkeypatch):
    given = f"{os.environ['PYFF_TEST_DSN']} password=secret"
    monkeypatch.setenv("PYFF_DSN", given)
    assert pyff("dsn") == 0
    assert capsys.readouterr().out.strip() == given
    assert pyff("status") == 0
    assert pyff("status", "--json") == 0
    shown = capsys.readouterr().out
    assert "PYFF_DSN" in shown
    assert "secret" not in shown
    with pytest.raises(Failure, match="pyff does not stop"):
        pyff("stop")
