"""`pyff ls`, `show`, `tail`, `events`, `flow`."""

import json
import re
import subprocess
import sys
import uuid

from tests.events.support import settle
from tests.postgres.helpers import until
from tests.sql import create, one, rows, table, take
from tests.streams.support import append
from tests.suspensions.support import suspended


def test_ls_filters_and_goes_through_pages(db, pyff, clock, monkeypatch):
    clock.freeze()
    ids = []
    for n in range(5):
        clock.advance(1)
        ids.append(create(db, "mail", execution_kind="k", tags={"app.n": str(n)}))
    clock.advance(1)
    other = create(db, "other", namespace="elsewhere")
    done = take(db, "mail")
    one(db, "ff_complete", handle=done["handle"])
    listed = pyff("ls").out.splitlines()
    assert listed[0].split() == ["execution", "lane", "kind", "state", "priority", "created", "ended"]
    assert [line.split()[0] for line in listed[2:]] == [other, *reversed(ids)]
    for args in (["ls"], ["ls", "--lane", "mail"], ["ls", "--tag", "app.n"]):
        oldest = pyff(*args, "--oldest", "--json").objects
        assert pyff(*args, "--json").objects == oldest[::-1]
    assert len(oldest) == 5
    assert [row["execution_id"] for row in pyff("ls", "--state", "completed", "--json").objects] == [ids[0]]
    assert [row["execution_id"] for row in pyff("ls", "--namespace", "elsewhere", "--json").objects] == [
        other
    ]
    assert [row["execution_id"] for row in pyff("ls", "--tag", "app.n=3", "--json").objects] == [ids[3]]
    assert len(pyff("ls", "--tag", "app.n", "--json").objects) == 5
    monkeypatch.setattr("pyff.cli.ls.LIMIT", 2)
    for order, wanted in ([], [other, *reversed(ids)]), (["--oldest"], [*ids, other]):
        short = pyff("ls", "--limit", "2", *order)
        cursor = re.search(r"--after (\S+)", short.err)[1]
        after = pyff("ls", "--after", cursor, *order, "--json").objects
        assert [row["execution_id"] for row in after] == wanted[2:]
        assert [row["execution_id"] for row in pyff("ls", "--all", *order, "--json").objects] == wanted
        assert len(pyff("ls", "--limit", "3", *order, "--json").objects) == 3
    assert pyff("ls", "--lane", "nobody").out == "no such execution\n"
    assert pyff("ls", "--lane", "nobody", "--json").out == ""
    for order in ([], ["--oldest"]):
        for nonsense in ("nonsense", "7-nonsense", "9" * 30 + "-" + str(uuid.uuid4())):
            assert "(hint:" in pyff("ls", "--after", nonsense, *order, code=1).err
        assert pyff("ls", "--tag", "Bad", *order, code=1)


def test_show_lists_the_children_of_an_execution(db, pyff):
    parent = create(db, "mail")
    assert "children" not in pyff("show", parent).out
    child = create(db, "later", parent_execution_id=parent, execution_kind="resize")
    said = pyff("show", parent).out
    assert re.search(rf"^  {re.escape(child)} +resize +later +waiting ", said, re.M)
    (told,) = pyff("show", parent, "--json").object["children"]
    assert (told["execution_id"], told["detached"]) == (child, False)
    assert f"parent_execution_id: {parent}\n" in pyff("show", child).out


def test_show_tells_everything_about_an_execution(db, pyff):
    create(db, "mail", payload=b"hello \x1b[31m", tags={"app.n": "1"})
    claim = take(db, "mail")
    one(db, "ff_fail", handle=claim["handle"], reason="no such box", classification="permanent")
    wire = claim["execution_id"]
    said = pyff("show", wire).out
    assert said.startswith(f"{wire} is failed: no such box\n")
    assert "payload: hello \\x1b[31m\n" in said
    assert re.search(r"^  0 +initial +ended_failure +w-1 ", said, re.M)
    assert "\x1b" not in said
    assert "lifecycle_phase" not in said
    assert "  lifecycle_phase:       terminal\n" in pyff("show", wire, "--all").out
    told = pyff("show", wire[-36:], "--json").object
    assert (told["execution_id"], told["public_state"], told["payload"]) == (wire, "failed", "hello \x1b[31m")
    assert told["attempts"][0]["failure_reason"] == "no such box"
    assert told["result"] is None


def test_bytes_that_are_no_text_are_base64_for_programs(db, pyff):
    create(db, payload=b"\xff\x00")
    claim = take(db)
    one(db, "ff_complete", handle=claim["handle"], result=b"fine")
    told = pyff("show", claim["execution_id"], "--json").object
    assert (told["payload"], told["payload_base64"], told["result"]) == (None, "/wA=", "fine")
    said = pyff("show", claim["execution_id"]).out
    assert "payload: \\xff00\n" in said
    assert "result: fine\n" in said


def test_show_names_what_it_waits_for_and_a_paused_lane(db, pyff):
    claim, point = suspended(db)
    said = pyff("show", claim["execution_id"]).out
    assert "is suspended: waiting_for_signal" in said
    assert f"{point['waitpoint_id']}  approval  active  approve" in said
    told = pyff("show", claim["execution_id"], "--json").object
    assert told["waitpoints"][0]["waitpoint_id"] == str(point["waitpoint_id"])
    waiting = create(db, "mail")
    pyff("lane", "pause", "mail")
    assert pyff("show", waiting).out.startswith(f"{waiting} is waiting; lane mail is paused\n")


def test_an_unknown_id_is_exit_code_3_and_a_malformed_one_2(db, pyff, bare):
    said = pyff("show", uuid.uuid4(), code=3)
    assert said.err.startswith("pyff: there is no execution {fp:")
    flow = one(db, "ff_create_flow")["flow_id"]
    assert f"pyff flow show {flow}" in pyff("show", flow, code=3).err
    assert bare("show", "{fp:7}:nonsense").code == 2
    assert bare("show", "{fp:999}:" + str(uuid.uuid4()), "--dsn", db.info.dsn).code == 1
    for command in ("cancel", "replay", "requeue", "tail", "approve"):
        assert pyff(command, uuid.uuid4(), code=3).err.startswith("pyff: ")
    assert pyff("flow", "show", uuid.uuid4(), code=3)
    assert pyff("flow", "cancel", uuid.uuid4(), code=3)


def test_tail_prints_frames_and_follows_until_the_stream_ends(db, pyff):
    create(db)
    claim = take(db)
    for n in range(3):
        append(db, claim, b"frame %d" % n)
    append(db, claim, b"\xff\x1b", frame_type="log")
    said = pyff("tail", claim["execution_id"]).out.splitlines()
    assert [line.split("  ", 1)[1] for line in said] == ["frame 0", "frame 1", "frame 2", "[log] \\xff1b"]
    first = said[0].split()[0]
    told = pyff("tail", claim["execution_id"], "--after", first, "--json").objects
    assert [frame["payload"] for frame in told] == ["frame 1", "frame 2", None]
    one(db, "ff_complete", handle=claim["handle"])
    assert len(pyff("tail", claim["execution_id"], "--follow", "--attempt", "0").out.splitlines()) == 4
    never = create(db)
    assert pyff("tail", never).err.startswith("the execution has not been claimed")
    assert pyff("tail", claim["execution_id"], "--attempt", "7", code=3)
    assert pyff("tail", claim["execution_id"], "--after", "x", code=1)


def test_a_follower_waits_for_the_first_attempt_and_for_none_after_the_end(db, dsn, pyff):
    wire = create(db, "mail")
    follower = subprocess.Popen(
        [sys.executable, "-m", "pyff", "tail", wire, "--follow", "--json", "--dsn", dsn],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    looked = (
        "select from pg_stat_activity where query like '%%lane_state%%' and pid <> pg_backend_pid()"
        " and datname = current_database()"
    )
    until(lambda: table(db, looked) or follower.poll() is not None)
    claim = take(db, "mail")
    append(db, claim, b"one")
    one(db, "ff_complete", handle=claim["handle"])
    out, err = follower.communicate(timeout=90)
    assert (follower.returncode, err) == (0, "")
    assert [json.loads(line)["payload"] for line in out.splitlines()] == ["one"]
    never = create(db, "mail")
    one(db, "ff_cancel_execution", execution_id=never)
    assert "the execution has not been claimed" in pyff("tail", never, "--follow").err


def test_events_are_printed_filtered_and_followed(db, pyff):
    first = create(db)
    one(db, "ff_complete", handle=take(db)["handle"])
    second = create(db)
    claim = take(db)
    one(db, "ff_fail", handle=claim["handle"], reason="oh", classification="permanent")
    settle(db)
    said = pyff("events", "--execution", first).out.splitlines()
    assert [line.split("  ")[1] for line in said] == [
        "lease/acquired",
        "lease/released",
        "completion/success",
    ]
    assert said[0].endswith(f"  {first} default by w-1")
    told = pyff("events", "--family", "completion", "--json").objects
    assert [(event["execution_id"], event["event_type"]) for event in told] == [
        (first, "success"),
        (second, "failed"),
    ]
    after = pyff("events", "--family", "completion", "--after", told[0]["cursor"]).out
    assert after.endswith(f"completion/failed  {second} default: oh\n")
    assert len(pyff("events", "--type", "acquired", "--json").objects) == 2
    assert len(pyff("events", "--follow", "--limit", "3", "--json").objects) == 3
    assert pyff("events", "--after", "now").out == ""
    assert "(hint: " in pyff("events", "--after", "nonsense", code=1).err


def test_flows_are_listed_shown_and_cancelled(db, pyff):
    nodes = [{"key": key, "lane_id": "default"} for key in "ab"]
    from psycopg.types.json import Jsonb

    made = rows(db, "ff_submit_flow", nodes=Jsonb(nodes), edges=Jsonb([{"from": "a", "to": "b"}]))
    flow = str(made[0]["flow_id"])
    assert [row["flow_id"] for row in pyff("flow", "list", "--json").objects] == [flow]
    assert flow in pyff("flow", "list", "--state", "open").out
    assert pyff("flow", "list", "--state", "failed").out == "no such flow\n"
    told = pyff("flow", "show", flow, "--json").object
    assert (told["flow_id"], len(told["members"]), len(told["edges"])) == (flow, 2, 1)
    done = pyff("flow", "cancel", flow, "--reason", "withdrawn", "--wait", "10s")
    assert done.out == "cancelled: 2 members cancelled\n"
    assert pyff("flow", "cancel", flow, "--json").object["outcome"] == "already_terminal"
