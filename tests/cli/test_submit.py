"""`pyff submit`."""

import threading

import pytest

from tests.sql import claim, execution, one, table, take


def test_an_execution_is_submitted_with_all_that_was_said(db, pyff):
    args = [
        "--payload",
        "grüße",
        "--kind",
        "welcome",
        "--key",
        "k1",
        "--priority",
        "7",
        "--tag",
        "app.customer=42",
    ]
    args += [
        "--capability",
        "gpu",
        "--policy",
        '{"max_replay_count": 3}',
        "--deadline",
        "1h",
        "--creator",
        "anna",
    ]
    made = pyff("submit", "mail", *args, "--json").object
    assert (made["outcome"], made["public_state"]) == ("created", "waiting")
    stored = one(db, "ff_describe_execution", execution_id=made["execution_id"])
    assert (stored["execution_kind"], stored["priority"], stored["tags"]) == (
        "welcome",
        7,
        {"app.customer": "42"},
    )
    assert (stored["required_capabilities"], stored["creator"]) == (["gpu"], "anna")
    assert stored["policy"]["max_replay_count"] == 3
    assert 0 < stored["deadline_at_ms"] - stored["created_at_ms"] <= 3_600_000
    taken = take(db, "mail", capabilities=["gpu"])
    assert (bytes(taken["payload"]).decode(), taken["payload_encoding"]) == ("grüße", "utf8")
    again = pyff("submit", "mail", *args)
    assert again.out == f"duplicate {made['execution_id']} active\n"
    assert "hint:" in pyff("submit", "mail", "--payload", "other", "--key", "k1", code=1).err


def test_a_delay_and_a_payload_from_a_file_or_the_input(db, pyff, tmp_path):
    file = tmp_path / "payload"
    file.write_bytes(b"\x00\xff")
    made = pyff("submit", "mail", "--payload-file", file, "--delay", "5m", "--json").object
    assert made["public_state"] == "delayed"
    stored = execution(db, made["execution_id"])
    assert stored["delay_until_ms"] - stored["created_at_ms"] == 300_000
    pyff("submit", "mail", "--payload-file", "-", text="from the input\n")
    assert bytes(take(db, "mail")["payload"]) == b"from the input\n"
    missing = pyff("submit", "mail", "--payload-file", tmp_path / "none", code=1)
    assert missing.err.endswith("none: No such file or directory\n")


def test_every_line_of_the_input_is_an_execution(db, pyff):
    text = "".join(f"line {n}\n" for n in range(1, 2301))
    assert (
        pyff("submit", "mail", "--lines", "--key", "import", text=text).out == "2300 created, 0 duplicate\n"
    )
    assert (
        pyff("submit", "mail", "--lines", "--key", "import", text=text).out == "0 created, 2300 duplicate\n"
    )
    (stored,) = table(db, "select count(*), min(convert_from(payload, 'UTF8')) as first from ff_exec_input")
    assert (stored["count"], stored["first"]) == (2300, "line 1")
    rows = pyff("submit", "mail", "--lines", "--priority", "5", "--json", text="a\nb").objects
    assert [row["outcome"] for row in rows] == ["created", "created"]
    assert execution(db, rows[1]["execution_id"])["priority"] == 5
    assert pyff("submit", "mail", "--lines", text="").out == "0 created, 0 duplicate\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--policy", "{nonsense"], "it is not JSON"),
        (["--policy", "[]"], "it is not a JSON object"),
        (["--tag", "novalue"], "is not key=value"),
        (["--delay", "soon"], "is not a duration"),
        (["--payload", "\udcff"], "it is not UTF-8"),
        (["--flow", "7"], "is not a uuid"),
        (["--priority", "high"], "invalid int value"),
    ],
)
def test_arguments_that_make_no_sense_are_exit_code_2(bare, args, said):
    done = bare("submit", "mail", *args)
    assert done.code == 2
    assert said in done.err


def test_what_the_engine_refuses_is_one_line_with_its_hint(pyff):
    done = pyff("submit", "mail", "--policy", '{"retry_policy": 7}', code=1)
    assert "(hint: " in done.err
    pyff("submit", "mail", "--tag", "Bad Key=x", code=1)
    pyff("submit", "", code=1)
    pyff("submit", "mail", "--lines", "--wait", "1s", text="x", code=1)


def test_waiting_for_the_end_tells_the_outcome_by_the_exit_code(db, pyff, connect):
    def work(verb, **args):
        conn = connect()
        while (taken := claim(conn, "mail")) is None:
            pass
        one(conn, verb, handle=taken["handle"], **args)

    worker = threading.Thread(target=work, args=("ff_complete",), kwargs={"result": b"sent \x1b[31m"})
    worker.start()
    done = pyff("submit", "mail", "--wait", "30s")
    worker.join()
    assert done.out.startswith("completed {fp:")
    assert done.out.endswith(" sent \\x1b[31m\n")
    worker = threading.Thread(
        target=work, args=("ff_fail",), kwargs={"reason": "no such box", "classification": "permanent"}
    )
    worker.start()
    from pyff.cli import main

    code = main(["submit", "mail", "--wait", "30s", "--dsn", db.info.dsn])
    worker.join()
    assert code == 1
    assert "is waiting after 0 ms" in pyff("submit", "mail", "--wait", "0s", code=5).err
