"""`pyff worker` as a process: signals, crashes, mistakes on its command line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyff import App, Worker
from pyff.cli import main, worker
from pyff.cli.worker import load
from pyff.failure import Failure
from pyff.worker import peers
from tests.worker.conftest import until

ROOT = Path(__file__).parents[2]

MODULE = """
import os, time
from pathlib import Path
import pyff

app = pyff.App()
BEGUN = Path(os.environ["BEGUN"])

@app.task()
def quick(n: int) -> int:
    return n

@app.task()
def slow(seconds: float) -> str:
    BEGUN.touch()
    time.sleep(seconds)
    return "done"

@app.task()
def stepping(ctx: pyff.Ctx) -> list[int]:
    first = ctx.step("first", os.getpid)
    second = ctx.step("second", second_step, ctx.attempt)
    return [first, second, os.getpid()]

def second_step(attempt: int) -> int:
    BEGUN.touch()
    while attempt == 0:
        time.sleep(0.01)
    return os.getpid()
"""


@pytest.fixture
def place(tmp_path, dsn, monkeypatch):
    """A directory with a user's module, which is imported here too."""
    (tmp_path / "shop_tasks.py").write_text(MODULE)
    monkeypatch.setenv("BEGUN", str(tmp_path / "begun"))
    monkeypatch.setenv("PYFF_DSN", dsn)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("shop_tasks", None)
    yield tmp_path
    sys.modules.pop("shop_tasks", None)


@pytest.fixture
def start(place):
    started = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pyff", "worker", "shop_tasks:app", "--poll-s", "0.2", *options]
        started.append(subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def shop(place, engine):
    app = load("shop_tasks:app").bind(engine)
    return app.tasks


def test_sigterm_lets_the_running_task_finish(shop, start, place):
    handle = shop["slow"].enqueue(0.7)
    process = start("--json")
    until((place / "begun").exists)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=90)
    assert process.returncode == 0
    assert handle.result(0) == "done"
    lines = [json.loads(line) for line in said.splitlines()]
    assert [line["message"] for line in lines if line["logger"] == "pyff.worker"][1:] == [
        "signal SIGTERM",
        "draining",
        "stopped",
    ]


def test_a_second_signal_gives_back_at_once(shop, start, place):
    handle = shop["slow"].enqueue(600.0)
    process = start("--drain-s", "600")
    until((place / "begun").exists)
    process.send_signal(signal.SIGTERM)
    for line in process.stderr:
        if "draining" in line:
            break
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=90)
    assert handle.state() == "resumable"
    assert handle.describe().retry_count == 0


@pytest.mark.slow("kills processes")
def test_the_work_of_a_killed_worker_goes_on_long_before_its_lease_ends(shop, start, place, dsn, monkeypatch):
    monkeypatch.setattr(peers, "RETURN_S", 0.0)  # the server of the tests may be young
    handle = shop["stepping"].enqueue()
    first = start("--lease-ttl-ms", "120000")
    until((place / "begun").exists)
    with Worker(shop["stepping"].app, dsn, lease_ttl_ms=120_000):
        first.kill()
        first.communicate()
        recorded, again, _ = handle.result(90)
    assert recorded == first.pid
    assert again == os.getpid()
    assert handle.describe().lease_reclaim_count == 1


@pytest.mark.slow("kills processes")
def test_a_step_recorded_before_a_crash_is_not_run_again_and_one_that_was_running_is(
    shop, start, place, engine, db, clock
):
    handle = shop["stepping"].enqueue()
    first = start("--lease-ttl-ms", "600000")
    until((place / "begun").exists)
    until(lambda: len(engine.read_steps(handle.execution_id)) == 1)
    first.kill()
    first.communicate()
    sessions = (
        "select from pg_stat_activity where application_name = 'pyff-worker' and datname = current_database()"
    )
    until(lambda: not db.execute(sessions).fetchall())  # none of its calls is still under way
    clock.advance(600_000)
    second = start("--lease-ttl-ms", "600000")
    recorded, again, ended = handle.result(90)
    assert (recorded, again, ended) == (first.pid, second.pid, second.pid)
    assert handle.describe().lease_reclaim_count == 1


def test_every_process_is_an_instance_of_its_own(shop, start, db):
    processes = [start("--worker-id", "same"), start("--worker-id", "same")]
    until(
        lambda: (
            db.execute("select count(distinct worker_instance_id) from ff_worker_registry").fetchone()[0] == 2
        )
    )
    assert db.execute("select distinct worker_id from ff_worker_registry").fetchall() == [("same",)]
    for process in processes:
        process.terminate()
        process.communicate(timeout=90)
    assert db.execute("select count(*) from ff_worker_registry").fetchone()[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere:app"], 1, "module nowhere not found"),
        (["shop_tasks:nothing"], 1, "is not an App"),
        ([":app"], 1, "is not a module name"),
        ([""], 1, "is not a module name"),
        (["..shop_tasks:app"], 1, "is not a module name"),
        (["./shop_tasks.py:app"], 1, "is not a module name"),
        (["shop_tasks:app", "--dsn", "host=/nowhere"], 4, "cannot connect to the database"),
        (["shop_tasks:app", "--dsn", "postgresql://u:hidden@[half"], 4, "is malformed"),
        (["shop_tasks:app", "--listen-dsn", "postgresql://u:hidden@[half"], 4, "is malformed"),
        (["shop_tasks:app", "--listen-dsn", "host=/nowhere"], 4, "cannot connect to the database"),
        (["shop_tasks:app", "--slots", "0"], 2, "is not a number above 0"),
        (["shop_tasks:app", "--lanes", "a=b"], 2, "is not a weight"),
        (["shop_tasks:app", "--lanes", "a=0"], 2, "is not a weight"),
        (["shop_tasks:app", "--lanes", "a=inf"], 2, "is not a weight"),
        (["shop_tasks:app", "--lanes", ""], 2, "no lane given"),
        (["shop_tasks:app", "--lanes", "x" * 65], 1, "lane"),
        (["shop_tasks:app", "--poll-s", "0"], 2, "--poll-s"),
        (["shop_tasks:app", "--poll-s", "nan"], 2, "--poll-s"),
        (["shop_tasks:app", "--drain-s", "-1"], 2, "--drain-s"),
        (["shop_tasks:app", "--drain-s", "nan"], 2, "--drain-s"),
        (["shop_tasks:app", "--lanes", "a=nan"], 2, "is not a weight"),
        (["shop_tasks:app", "--metrics-port", "86400000"], 2, "--metrics-port"),
    ],
)
def test_a_mistake_is_told_in_a_line(place, arguments, code, said, capsys, monkeypatch):
    monkeypatch.setattr(worker, "_logging", lambda level, as_json: None)  # of this process
    try:
        ended = main(["worker", *arguments])
    except SystemExit as left:  # by argparse
        ended = left.code
    told = capsys.readouterr().err
    assert ended == code, told
    assert said in told
    assert "hidden" not in told
    assert told.startswith("pyff: ")
    assert "(hint: " in told
    assert told.count("\n") == 1


def test_an_error_inside_the_module_is_not_hidden(place):
    (place / "broken.py").write_text("import no_such_package")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        load("broken:app")
    with pytest.raises(Failure, match="is not an App"):
        load("shop_tasks:BEGUN")
    assert isinstance(load("shop_tasks"), App)
    assert os.getcwd() == str(place)  # noqa: PTH109
