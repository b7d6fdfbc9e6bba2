"""Ctrl-c while a command starts, and unread output: for every command."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from pyff.cli import main
from tests.cli.test_every_command import EVERY, LEAVES, arguments, names
from tests.sql import create, one, take

ROOT = Path(__file__).parents[2]
ENDS = {("top",): ["--once"], ("maintain",): ["--once"]}  # without it they go on for ever


def environment(**more):
    return {name: value for name, value in os.environ.items() if name != "PYFF_DSN"} | more


INTERRUPTED = """
import os, signal, sys
wanted, sys.argv = sys.argv[1], ["pyff", *sys.argv[2:]]
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from pyff.__main__ import run
sys.exit(run())
"""


@pytest.mark.parametrize(
    "module", ["pyff.cli", "argparse", "pyff.cli.sql", "pyff.cli.exits", "psycopg", "pyff.engine"]
)
def test_ctrl_c_while_it_starts_is_exit_code_130_without_a_word(module):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, "ls", "--dsn", "host=/nonexistent"],
        capture_output=True,
        env=environment(PYTHONPATH=str(ROOT)),
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b""), done


def test_who_ignores_ctrl_c_is_not_ended_by_it():
    """As under `nohup`, and for background jobs of a script."""
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + INTERRUPTED
    done = subprocess.run(
        [sys.executable, "-c", ignoring, "argparse", "ls", "--dsn", "host=/nonexistent"],
        capture_output=True,
        env=environment(PYTHONPATH=str(ROOT)),
        timeout=300,
        check=False,
    )
    assert done.returncode == 4, done


@pytest.fixture
def somewhere(db, dsn, monkeypatch, tmp_path):
    """A database with rows, so that every command prints something; and its own server directory."""
    create(db, "mail", execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07")
    create(db, "7")
    one(db, "ff_fail", handle=take(db, "7")["handle"], classification="permanent")
    monkeypatch.setenv("PYFF_HOME", str(tmp_path))
    monkeypatch.delenv("PYFF_DSN", raising=False)
    return dsn


def given(path, dsn):
    reaching = ["--dsn", dsn] if "--dsn" in LEAVES[path]._option_string_actions else []
    return [*arguments(path), *ENDS.get(path, []), *reaching]


def run_into(args, stream, monkeypatch):
    monkeypatch.setattr(sys, "stdout", stream)
    try:
        return main(args)
    except SystemExit as left:
        return left.code
    finally:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.close()


@pytest.fixture
def unread():
    """The write end of a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


CODES = {0, 1, 2, 3, 4, 5}
SKIPPED = {("server", "start"), ("server", "stop"), ("demo",), ("bench",), ("worker",)}  # they take long
SPEAKING = [path for path in LEAVES if path not in SKIPPED]


@names(SPEAKING)
def test_unread_output_is_not_an_error(path, somewhere, unread, monkeypatch, capfd):
    code = run_into(given(path, somewhere), unread, monkeypatch)
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert said.count("\n") <= 1, said
    assert code in {141, *CODES}


@names(SPEAKING)
def test_closed_output_is_no_error(path, somewhere, monkeypatch, capfd):
    code = run_into(given(path, somewhere), None, monkeypatch)
    assert code in CODES
    assert "Traceback" not in capfd.readouterr().err


@names(EVERY)
def test_unread_help_is_not_an_error(path, unread, monkeypatch, capfd):
    assert run_into([*path, "--help"], unread, monkeypatch) == 141
    assert capfd.readouterr().err == ""


def test_a_full_disk_is_told(somewhere, monkeypatch, capfd):
    if not Path("/dev/full").is_char_device():
        pytest.skip("there is no /dev/full here")
    full = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")
    assert run_into(["ls", "--dsn", somewhere], full, monkeypatch) == 1
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "No space left" in said


def written(process, master, slave):
    """The terminal output of a process, which must succeed."""
    os.close(slave)
    got = b""
    with contextlib.suppress(OSError):
        while piece := os.read(master, 65536):
            got += piece
    os.close(master)
    assert process.wait(300) == 0, got
    return got


@pytest.mark.parametrize(("lines", "columns"), [(24, 80), (3, 10), (1, 1), (0, 0)])
def test_a_terminal_of_any_size_will_do(db, dsn, lines, columns):
    create(db, "mail")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    commands = [["top", "--once"], ["ls"], ["doctor", "--only", "clock"]]
    script = "\n".join([
        "from pyff.cli import main",
        *(f"main({[*command, '--dsn', dsn]!r})" for command in commands),
        "main(['--help'])",
    ])  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=slave, stdout=slave, stderr=slave, env=environment(PYTHONPATH=str(ROOT), NO_COLOR="1"),
    )  # fmt: skip
    got = written(process, master, slave)
    assert b"Traceback" not in got
    assert b"\x1b[3" not in got
    assert b"ok: clock" in got


def painted(command, dsn, **variables):
    """What a command writes to a terminal of 40 columns, as it is written."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "pyff", *command, "--dsn", dsn],
        stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
        env=environment(PYTHONPATH=str(ROOT), TERM="xterm") | variables,
    )  # fmt: skip
    got = written(process, master, slave)
    return got.decode()


def test_colour_is_for_terminals_that_want_it(db, dsn):
    node = {"key": "a", "lane_id": "default", "execution_kind": "a"}
    flow = one(db, "ff_submit_flow", nodes=Jsonb([node]))["flow_id"]
    one(db, "ff_complete", handle=take(db)["handle"])
    show = ["flow", "show", str(flow)]
    assert "\x1b[32m✓ completed" in painted(show, dsn)
    assert "\x1b[32m✓ completed" in painted(show, dsn, NO_COLOR="")  # empty is as good as not there
    assert "\x1b" not in painted(show, dsn, NO_COLOR="1")
    assert "\x1b" not in painted(show, dsn, TERM="dumb")


def test_a_bar_stays_on_its_line_and_off_a_terminal_that_cannot_take_it_back(db, dsn):
    bench = ["bench", "--seconds", "300ms", "--clients", "1"]
    drawn = re.findall(r"\r(measuring.*?)\x1b\[K", painted(bench, dsn))
    assert drawn
    assert max(map(len, drawn)) < 40
    assert "\x1b" not in painted(bench, dsn, TERM="dumb")
