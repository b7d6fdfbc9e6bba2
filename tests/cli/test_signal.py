"""`pyff signal` and the Python methods."""

import json
import os
import subprocess
import sys
import uuid

import psycopg
import pytest

import pyff
from tests.sql import execution
from tests.suspensions.support import APPROVAL, deliver, run, signals, suspended, waitpoint


def signal(dsn, claim, point, *options, token=None, name="approve", **env):
    command = [
        sys.executable,
        "-m",
        "pyff",
        "signal",
        claim["execution_id"],
        str(point["waitpoint_id"]),
        name,
    ]
    return subprocess.run(
        [*command, *options],
        input=token,
        env={**os.environ, "PYFF_DSN": dsn, **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_command_delivers_a_signal(db, dsn):
    claim, point = suspended(db)
    options = [
        "--payload",
        "fine ü",
        "--source",
        "anna",
        "--correlation-id",
        "c",
        "--idempotency-key",
        "k",
        "--json",
    ]
    done = signal(dsn, claim, point, *options, "--token", point["waitpoint_token"])
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["outcome"], answer["resumed"], answer["public_state"]) == ("accepted", True, "resumable")
    (g,) = signals(db, claim)
    assert (bytes(g["payload"]).decode(), g["payload_encoding"], g["source_identity"]) == (
        "fine ü",
        "utf8",
        "anna",
    )
    again = signal(dsn, claim, point, *options, PYFF_WAITPOINT_TOKEN=point["waitpoint_token"])
    assert json.loads(again.stdout)["outcome"] == "duplicate"


def test_the_token_comes_from_the_input_and_a_delay_from_an_option(db, dsn):
    claim, point = suspended(db)
    done = signal(
        dsn, claim, point, "--token", "-", "--resume-delay-ms", "60000", token=point["waitpoint_token"] + "\n"
    )
    assert done.stdout == "accepted: resume_condition_satisfied; the execution is delayed\n"


def test_the_uuid_of_the_execution_is_enough(db, dsn):
    claim, point = suspended(db)
    bare = {"execution_id": claim["execution_id"][-36:]}
    done = signal(dsn, bare, point, "--token", point["waitpoint_token"])
    assert (done.returncode, done.stderr) == (0, "")
    assert signal(dsn, {"execution_id": "nonsense"}, point, "--token", "k:0").returncode == 2


def test_what_is_refused_is_one_line_and_a_hint_without_the_token(db, dsn):
    claim, point = suspended(db)
    done = signal(dsn, claim, point)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("pyff: a signal needs the token")
    token = "k1:" + "0" * 64
    done = signal(dsn, claim, point, "--token", token)
    assert done.returncode == 1
    assert done.stderr.startswith("pyff: the token does not open this waitpoint (hint: ")
    assert "0" * 64 not in done.stderr
    done = signal(dsn, claim, {"waitpoint_id": "x"}, "--token", token)
    assert done.returncode == 2


def test_suspend_is_strict_and_try_suspend_tells(db, dsn):
    with pyff.Engine(dsn) as engine:
        claim = run(db)
        point = waitpoint(db, claim["handle"])
        deliver(db, claim, point)
        bind = [{"use_pending": str(point["waitpoint_id"])}]
        with pytest.raises(pyff.AlreadySatisfied) as caught:
            engine.suspend(claim["handle"], APPROVAL, waitpoints=bind)
        assert caught.value.detail["outcome"] == "already_satisfied"
        assert uuid.UUID(str(caught.value.detail["suspension_id"]))
        (row,) = engine.try_suspend(claim["handle"], APPROVAL, waitpoints=bind)
        assert (row.outcome, row.replayed) == ("already_satisfied", True)
        (row,) = engine.suspend(claim["handle"], APPROVAL, idempotency_key="k")
        assert row.outcome == "suspended"
        engine.resume_execution(claim["execution_id"])
        again = engine.claim("default", "w", "w-1")
        with pytest.raises(pyff.AlreadySatisfied) as caught:
            engine.suspend(again.handle, APPROVAL, idempotency_key="k")
        assert caught.value.detail["outcome"] == "already_resumed"


async def test_the_async_methods_do_the_same(db, dsn):
    claim = run(db)
    async with pyff.AsyncEngine(dsn) as engine:
        (row,) = await engine.suspend(claim["handle"], APPROVAL)
        answer = await engine.deliver_signal(
            claim["execution_id"], row.waitpoint_id, row.waitpoint_token, "approve"
        )
        assert answer.resumed
        assert answer.public_state is pyff.PublicState.RESUMABLE


def test_a_suspension_is_part_of_the_callers_transaction(db, dsn):
    claim = run(db)
    with psycopg.connect(dsn) as conn, pyff.Engine(dsn) as engine:
        engine.suspend(claim["handle"], APPROVAL, conn=conn)
        conn.rollback()
    assert execution(db, claim["execution_id"])["public_state"] == "active"


def test_bad_input_and_a_server_that_is_not_there_are_told_without_a_traceback(db, dsn):
    claim, point = suspended(db)
    token = ["--token", point["waitpoint_token"]]
    nowhere = "host=/nonexistent dbname=x"
    cases = [
        (signal(nowhere, claim, point, *token), 4, "pyff: cannot connect to the database: "),
        (signal("nonsense", claim, point, *token), 4, "pyff: cannot connect to the database: "),
        (
            signal(dsn, claim, point, *token, "--payload", "\udcff"),
            1,
            "pyff: an argument is not UTF-8 (hint: ",
        ),
        (
            signal(dsn, claim, point, *token, "--resume-delay-ms", "9" * 20),
            2,
            "is not between 0 and 604800000",
        ),
    ]
    for done, code, said in cases:
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr
        assert point["waitpoint_token"] not in done.stderr
    assert signals(db, claim) == []
