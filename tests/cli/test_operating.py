"""`pyff approve`, `cancel`, `replay`, `requeue`, `lane`, `keys`."""

import json

import pytest

from tests.sql import claim, create, events, execution, one, rows, table, take
from tests.suspensions.support import all_of, single, suspended


def state(db, wire):
    return execution(db, wire)["public_state"]


def fail(db, lane="default", **args):
    create(db, lane, **args)
    taken = take(db, lane)
    one(db, "ff_fail", handle=taken["handle"], reason="oh", classification="permanent")
    return taken["execution_id"]


def test_an_approval_needs_no_more_than_the_execution(db, pyff):
    waiting, _ = suspended(db)
    wire = waiting["execution_id"]
    assert wire in pyff("approve").out
    assert [row["execution_id"] for row in pyff("approve", "--json").objects] == [wire]
    said = pyff("approve", wire, "--as", "anna", "--note", "fine")
    assert said.out == "accepted: resume condition satisfied; the execution is resumable\n"
    (signal,) = table(db, "select source_identity, signal_name, payload from ff_signal")
    assert (signal["source_identity"], signal["signal_name"], bytes(signal["payload"])) == (
        "anna",
        "approve",
        b"fine",
    )
    assert pyff("approve").out == "nothing waits\n"
    assert "no such open waitpoint" in pyff("approve", wire, code=1).err


def test_one_persons_decision_counts_once_and_two_people_count_twice(db, pyff):
    waiting, _ = suspended(
        db, {"kind": "count", "n": 2, "count_kind": "distinct_sources", "waitpoints": ["a"]}
    )
    wire = waiting["execution_id"]
    assert pyff("approve", wire, "--as", "anna", "--json").object["outcome"] == "accepted"
    assert pyff("approve", wire, "--as", "anna", "--json").object["outcome"] == "duplicate"
    assert state(db, wire) == "suspended"
    assert pyff("approve", wire, "--as", "bert", "--json").object["resumed"] is True


def test_what_is_not_clear_must_be_said(db, pyff):
    condition = all_of(single("a", "yes"), single("b", {"one_of": ["yes", "no"]}))
    waiting, _ = suspended(db, condition, waitpoints=[{"key": "a"}, {"key": "b"}])
    wire = waiting["execution_id"]
    assert "2 open waitpoints (hint: give --waitpoint" in pyff("approve", wire, code=1).err
    points = {row["waitpoint_key"]: row for row in rows(db, "ff_list_pending_waitpoints", execution_id=wire)}
    done = pyff("approve", wire, "--waitpoint", points["a"]["waitpoint_id"], "--json").object
    assert (done["matched"], done["resumed"]) == (True, False)
    second = ["--waitpoint", points["b"]["waitpoint_id"]]
    assert "several signals are possible: yes, no" in pyff("approve", wire, *second, code=1).err
    done = pyff("approve", wire, *second, "--signal", "no", "--json").object
    assert done["resumed"] is True


def test_cancel_takes_ids_input_and_filters(db, pyff):
    create(db)
    taken = take(db)
    first = taken["execution_id"]
    second, third = create(db), create(db)
    assert pyff("cancel", first, "--reason", "wrong").out == f"{first} cancelled, was active\n"
    assert pyff("cancel", first).out == f"{first} was already cancelled\n"
    assert execution(db, first)["cancellation_reason"] == "wrong"
    with pytest.raises(Exception, match="is cancelled"):
        one(db, "ff_complete", handle=taken["handle"])
    said = pyff("cancel", "-", "--json", text=f"{second}\n\n{third[-36:]}\n").objects
    assert [(row["execution_id"], row["outcome"]) for row in said] == [
        (second, "cancelled"),
        (third, "cancelled"),
    ]
    more = [create(db, "mail") for _ in range(3)]
    assert (
        "this would cancel 3 executions (hint: add --yes"
        in pyff("cancel", "--lane", "mail", "--state", "waiting", code=1).err
    )
    assert {state(db, wire) for wire in more} == {"waiting"}
    assert pyff("cancel", "--lane", "mail", "--state", "waiting", "--yes").out.endswith("cancel: 3 of 3\n")
    assert {state(db, wire) for wire in more} == {"cancelled"}
    assert pyff("cancel", "--lane", "mail", "--state", "waiting", "--yes").out == "cancel: 0 of 0\n"
    assert "which executions?" in pyff("cancel", code=1).err
    assert "not both" in pyff("cancel", first, "--lane", "mail", code=1).err
    assert "filters need --state" in pyff("cancel", "--lane", "mail", "--yes", code=1).err
    assert "nothing was done" in pyff("cancel", "-", text="nonsense\n", code=1).err


def test_several_targets_go_on_after_a_refusal(db, pyff, bare):
    create(db)
    done = take(db)
    one(db, "ff_complete", handle=done["handle"])
    waiting = create(db)
    said = bare("cancel", done["execution_id"], waiting, "--dsn", db.info.dsn)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert said.out == f"{waiting} cancelled, was waiting\ncancel: 1 of 2\n"


def test_replay_runs_what_has_ended_again(db, pyff):
    failed = [fail(db, "mail") for _ in range(2)]
    assert (
        pyff("replay", failed[0], "--reason", "fixed", "--by", "anna").out
        == f"{failed[0]} replayed, is waiting\n"
    )
    assert "operator/replayed:fixed" in events(db, failed[0])
    pyff("replay", "--lane", "mail", "--state", "failed", "--yes")
    assert {state(db, wire) for wire in failed} == {"waiting"}
    assert "(hint: " in pyff("replay", failed[0], code=1).err


def test_requeue_replays_what_has_failed_and_leaves_alone_what_waits(db, pyff):
    failed = fail(db)
    assert pyff("requeue", failed).out == f"{failed} replayed, is waiting\n"
    assert pyff("requeue", failed, "--json").object == {
        "execution_id": failed,
        "outcome": "already queued",
        "public_state": "waiting",
        "previous_state": "waiting",
    }
    taken = take(db)
    one(db, "ff_complete", handle=taken["handle"])
    assert "has completed (hint: --force" in pyff("requeue", failed, code=1).err
    assert pyff("requeue", failed, "--force").out == f"{failed} replayed, is waiting\n"


def test_requeue_takes_a_live_lease_away_only_by_force(db, pyff):
    create(db)
    taken = take(db)
    wire = taken["execution_id"]
    said = pyff("requeue", wire, code=1)
    assert said.err.startswith(f"pyff: w-1 works on {wire} under a live lease until ")
    assert pyff("requeue", wire, "--force").out == f"{wire} lease revoked, is active\n"
    assert claim(db, worker="v")["execution_id"] == wire
    with pytest.raises(Exception, match="lease"):
        one(db, "ff_complete", handle=taken["handle"])


def test_requeue_brings_back_what_time_has_freed(db, pyff, clock):
    clock.freeze()
    delayed = create(db, delay_ms=60_000)
    said = pyff("requeue", delayed, code=1)
    assert "is delayed until" in said.err
    create(db, "mail")
    taken = take(db, "mail", lease_ttl_ms=30_000)
    clock.advance(60_000)
    assert pyff("requeue", delayed).out == f"{delayed} promoted, is waiting\n"
    assert pyff("requeue", taken["execution_id"]).out.endswith("lease had ended, is active\n")
    assert "lease/expired:ttl" in events(db, taken["execution_id"])


def test_requeue_lets_a_suspended_one_go_on_only_by_force(db, pyff):
    waiting, _ = suspended(db)
    wire = waiting["execution_id"]
    assert "waits for signals (hint: --force" in pyff("requeue", wire, code=1).err
    assert pyff("requeue", wire, "--force").out == f"{wire} resumed, is resumable\n"


def test_requeue_does_not_break_dependencies(db, pyff):
    from psycopg.types.json import Jsonb

    nodes = [{"key": key, "lane_id": "default"} for key in "ab"]
    made = rows(db, "ff_submit_flow", nodes=Jsonb(nodes), edges=Jsonb([{"from": "a", "to": "b"}]))
    (child,) = (row["execution_id"] for row in made if row["node_key"] == "b")
    assert "waits for other executions (hint: pyff flow show" in pyff("requeue", child, code=1).err


def test_lanes_are_listed_paused_and_resumed(db, pyff):
    assert pyff("lane", "list").out.startswith("no lane")
    create(db, "mail")
    assert pyff("lane", "pause", "mail", "--reason", "down").out == "lane mail is paused, it was active\n"
    assert pyff("lane", "pause", "mail").out == "lane mail is paused already\n"
    assert claim(db, "mail") is None
    (row,) = pyff("lane", "list", "--json").objects
    assert (row["lane_id"], row["state"], row["state_reason"]) == ("mail", "paused", "down")
    assert "down" in pyff("lane", "list").out
    told = pyff("lane", "resume", "mail", "--json").object
    assert told == {"lane_id": "mail", "outcome": "changed", "previous_state": "paused", "state": "active"}
    assert claim(db, "mail") is not None
    assert pyff("lane", "drain", "new").out == "lane new is draining (a new lane)\n"
    assert pyff("lane", "disable", "new").out == "lane new is disabled, it was draining\n"
    assert "(hint: " in pyff("lane", "pause", "x" * 65, code=1).err
    assert pyff("submit", "new", code=1).err.startswith("pyff: ")


def test_keys_are_seeded_rotated_and_listed_without_their_secrets(db, pyff):
    secret = "ab" * 32
    assert pyff("keys", "seed", "k1").out == "already seeded: migrate\n"
    refused = pyff("keys", "seed", "k1", "--secret", "-", text=secret, code=1)
    assert "the key migrate is active (hint: " in refused.err
    db.execute("delete from ff_waitpoint_hmac")
    assert pyff("keys", "list").out.startswith("no key")
    assert pyff("keys", "seed", "k1", "--secret", "-", text=secret).out == "seeded: k1\n"
    assert pyff("keys", "seed", "k1").out == "already seeded: k1\n"
    other = pyff("keys", "seed", "k1", "--secret", "-", text="cd" * 32, code=None)
    assert other.out == "already seeded: k1, with another secret\n"
    assert pyff("keys", "seed", "k2", "--secret", "-", text=secret).out == "already seeded: k1\n"
    assert "(hint: " in pyff("keys", "seed", "k2", "--secret", "-", text="cd" * 32, code=1).err
    assert pyff("keys", "rotate", "k2", "--grace", "7d").out == "rotated: k2 signs now, k1 before\n"
    assert pyff("keys", "rotate", "k2", "--json").object["outcome"] == "noop"
    listed = {row["kid"]: row for row in pyff("keys", "list", "--json").objects}
    assert (listed["k2"]["active"], listed["k1"]["active"], listed["k1"]["verifying"]) == (True, False, True)
    assert listed["k1"]["expires_at_ms"] - listed["k2"]["installed_at_ms"] == 7 * 86_400_000
    said = pyff("keys", "list").out
    assert secret not in said + json.dumps(listed)
    assert "(hint: " in pyff("keys", "rotate", "bad kid", code=1).err
    assert "(hint: " in pyff("keys", "rotate", "k3", "--secret", "-", text="short", code=1).err
