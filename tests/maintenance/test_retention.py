"""ff_trim_retention: deletes old executions with all their rows."""

import pytest
from psycopg.types.json import Jsonb

from tests.sql import create, one, refused, rows, table, take, violations

DAY = 86_400_000
TABLES = ("ff_exec_core", "ff_exec_input", "ff_attempt", "ff_claim_grant")


def finish(db, **args):
    eid = create(db, **args)
    one(db, "ff_complete", handle=take(db, args.get("lane", "default"))["handle"])
    return eid


def left(db):
    return {
        f"{{fp:{r['partition_key']}}}:{r['execution_id']}" for r in table(db, "select * from ff_exec_core")
    }


def test_an_execution_goes_in_the_millisecond_its_retention_ends(db, clock):
    clock.freeze()
    finish(db)
    clock.advance(7 * DAY - 1)
    assert one(db, "ff_trim_retention") == {"processed": 0, "errors": 0, "more": False}
    clock.advance(1)
    assert one(db, "ff_trim_retention") == {"processed": 1, "errors": 0, "more": False}
    assert [table(db, f"select * from {name}") for name in TABLES] == [[], [], [], []]
    assert len(table(db, "select * from ff_event")) == 3
    assert violations(db) == []


def test_the_policys_own_retention_wins(db, clock):
    clock.freeze()
    short = finish(db, policy={"retention_ms": 10})
    long = finish(db, policy={"retention_ms": 100 * DAY})
    plain = finish(db)
    clock.advance(10)
    assert one(db, "ff_trim_retention")["processed"] == 1
    assert left(db) == {long, plain}
    clock.advance(8 * DAY)
    one(db, "ff_trim_retention")
    assert left(db) == {long}
    assert short not in left(db)


def ended(db, clock):
    """An execution per way to end, all of this moment, by their states."""
    now = clock.freeze()
    found = {"completed": finish(db)}
    found["failed"] = create(db)
    one(db, "ff_fail", handle=take(db)["handle"])
    found["cancelled"] = create(db)
    one(db, "ff_cancel_execution", execution_id=found["cancelled"])
    found["expired"] = create(db, deadline_at_ms=now + 1)
    clock.advance(1)
    one(db, "ff_expire_execution", execution_id=found["expired"], phase="execution_deadline")
    return found


def skipped(db):
    """A flow whose second member was skipped, because the first failed."""
    nodes = [{"key": key, "lane_id": "default"} for key in "ab"]
    edges = [{"from": "a", "to": "b"}]
    submitted = rows(db, "ff_submit_flow", nodes=Jsonb(nodes), edges=Jsonb(edges))
    one(db, "ff_fail", handle=take(db)["handle"])
    return [r["execution_id"] for r in submitted]


def test_what_succeeded_is_kept_for_7_days_and_what_did_not_for_30(db, clock):
    found = ended(db, clock)
    clock.advance(7 * DAY)
    assert one(db, "ff_trim_retention")["processed"] == 1
    assert left(db) == set(found.values()) - {found["completed"]}
    clock.advance(23 * DAY - 2)
    assert one(db, "ff_trim_retention")["processed"] == 0
    clock.advance(2)
    assert one(db, "ff_trim_retention")["processed"] == 3
    assert left(db) == set()
    assert violations(db) == []


def test_both_retentions_are_settings_that_ticks_follow(db, clock):
    found = ended(db, clock)
    assert one(db, "ff_setting", name="retention_ms")["value"] == str(7 * DAY)
    assert one(db, "ff_setting", name="retention_failed_ms")["value"] == str(30 * DAY)
    one(db, "ff_set_setting", name="retention_ms", value=str(50 * DAY))
    one(db, "ff_set_setting", name="retention_failed_ms", value="1000")
    clock.advance(1000)
    rows(db, "ff_tick", only=["trim_retention"], force=True)
    assert left(db) == {found["completed"]}


def test_a_retention_that_is_given_applies_to_every_end(db, clock):
    ended(db, clock)
    clock.advance(10)
    assert one(db, "ff_trim_retention", retention_ms=10)["processed"] == 4


def test_the_policys_own_retention_wins_over_both(db, clock):
    clock.freeze()
    short = create(db, policy={"retention_ms": 5})
    one(db, "ff_cancel_execution", execution_id=short)
    long = create(db, policy={"retention_ms": 31 * DAY})
    one(db, "ff_cancel_execution", execution_id=long)
    kept = finish(db, policy={"retention_ms": 31 * DAY})
    clock.advance(5)
    assert one(db, "ff_trim_retention")["processed"] == 1
    assert short not in left(db)
    clock.advance(30 * DAY)
    assert one(db, "ff_trim_retention")["processed"] == 0
    assert left(db) == {long, kept}
    clock.advance(DAY)
    assert one(db, "ff_trim_retention")["processed"] == 2


def test_a_flow_is_kept_as_long_as_the_member_that_did_not_succeed(db, clock):
    clock.freeze()
    failed, tolerated, good = skipped(db), race(db), race(db, lose=False)
    clock.advance(7 * DAY)
    assert one(db, "ff_trim_retention")["processed"] == 1
    assert left(db) == {*failed, *tolerated}
    assert not left(db) & set(good)
    clock.advance(23 * DAY - 1)
    assert one(db, "ff_trim_retention")["processed"] == 0
    clock.advance(1)
    assert one(db, "ff_trim_retention")["processed"] == 2
    assert violations(db) == []


def race(db, *, lose=True):
    """A completed flow: the first of two upstreams that succeeds is enough, the other one is cancelled or succeeds."""
    nodes = [{"key": key, "lane_id": "default"} for key in "abc"]
    edges = [{"from": "a", "to": "c"}, {"from": "b", "to": "c"}]
    groups = [{"to": "c", "policy": "any_of", "on_satisfied": "cancel_remaining" if lose else "let_run"}]
    submitted = rows(db, "ff_submit_flow", nodes=Jsonb(nodes), edges=Jsonb(edges), groups=Jsonb(groups))
    for _ in range(2 if lose else 3):
        one(db, "ff_complete", handle=take(db)["handle"])
        while one(db, "ff_drain_sibling_cancels")["processed"]:
            pass
    state = one(db, "ff_describe_flow", flow_id=submitted[0]["flow_id"])
    assert (state["public_flow_state"], state["members_cancelled"]) == ("completed", int(lose))
    return [r["execution_id"] for r in submitted]


def test_empty_flows_are_trimmed_too(db, clock):
    clock.freeze()
    one(db, "ff_create_flow")
    one(db, "ff_cancel_flow", flow_id=one(db, "ff_create_flow")["flow_id"])
    clock.advance(7 * DAY)
    assert one(db, "ff_trim_retention")["processed"] == 1
    clock.advance(23 * DAY)
    assert one(db, "ff_trim_retention")["processed"] == 1
    assert rows(db, "ff_list_flows") == []


def test_every_kind_of_end_is_trimmed_and_nothing_that_lives(db, clock):
    now = clock.freeze()
    alive = {create(db, delay_ms=100 * DAY), create(db, lane="x")}
    one(db, "ff_cancel_execution", execution_id=create(db))
    one(db, "ff_fail", handle=(create(db), take(db))[1]["handle"])
    create(db, deadline_at_ms=now + 1)
    running = (create(db), take(db))[0]
    clock.advance(1)
    rows(db, "ff_claim", lane_id="default", worker_id="w", worker_instance_id="w")
    clock.advance(31 * DAY)
    assert one(db, "ff_trim_retention")["processed"] == 3
    assert left(db) == alive | {running}


def test_the_oldest_go_first_and_more_says_when_to_call_again(db, clock):
    clock.freeze()
    ended = []
    for _ in range(3):
        ended.append(finish(db))
        clock.advance(1)
    clock.advance(7 * DAY)
    assert one(db, "ff_trim_retention", limit=2) == {"processed": 2, "errors": 0, "more": True}
    assert left(db) == {ended[2]}
    assert one(db, "ff_trim_retention", limit=0) == {"processed": 0, "errors": 0, "more": False}


def test_a_lane_or_a_namespace_can_be_trimmed_alone(db, clock):
    clock.freeze()
    kept = finish(db, namespace="a")
    finish(db, lane="other", namespace="b")
    clock.advance(1)
    assert one(db, "ff_trim_retention", retention_ms=0, lane_id="other")["processed"] == 1
    assert one(db, "ff_trim_retention", retention_ms=0, namespace="b")["processed"] == 0
    assert left(db) == {kept}


def test_a_locked_row_is_skipped(db, connect, clock):
    clock.freeze()
    held = finish(db)
    clock.advance(7 * DAY)
    holder = connect(autocommit=False)
    holder.execute("select from ff_exec_core for update")
    assert one(db, "ff_trim_retention")["processed"] == 0
    one(holder, "ff_replay_execution", execution_id=held)
    holder.commit()
    assert one(db, "ff_trim_retention")["processed"] == 0
    assert left(db) == {held}


def test_a_key_answers_duplicate_after_its_execution_was_trimmed(db, clock):
    clock.freeze()
    eid = finish(db, idempotency_key="k", policy={"dedup_window_ms": 10 * DAY})
    clock.advance(7 * DAY)
    one(db, "ff_trim_retention")
    again = one(
        db,
        "ff_create_execution",
        lane_id="default",
        idempotency_key="k",
        policy={"dedup_window_ms": 10 * DAY},
    )
    assert (again["outcome"], again["execution_id"], again["public_state"]) == ("duplicate", eid, None)


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        ({"retention_ms": -1}, "invalid_input"),
        ({"retention_ms": 2**63 - 1}, "invalid_input"),
        ({"limit": -1}, "invalid_input"),
        ({"limit": 100_001}, "invalid_input"),
        ({"lane_id": ""}, "invalid_lane_id"),
        ({"namespace": ""}, "invalid_input"),
    ],
)
def test_bad_input_is_refused(db, args, kind):
    with refused(kind):
        one(db, "ff_trim_retention", **args)
