"""ff_trim_retention: what ended long ago goes, with all that hangs off it."""

import pytest

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
    clock.advance(DAY - 1)
    assert one(db, "ff_trim_retention") == {"processed": 0, "errors": 0, "more": False}
    clock.advance(1)
    assert one(db, "ff_trim_retention") == {"processed": 1, "errors": 0, "more": False}
    assert [table(db, f"select * from {name}") for name in TABLES] == [[], [], [], []]
    assert len(table(db, "select * from ff_event")) == 3
    assert violations(db) == []


def test_the_policys_own_retention_wins(db, clock):
    clock.freeze()
    short = finish(db, policy={"retention_ms": 10})
    long = finish(db, policy={"retention_ms": 10 * DAY})
    plain = finish(db)
    clock.advance(10)
    assert one(db, "ff_trim_retention")["processed"] == 1
    assert left(db) == {long, plain}
    clock.advance(2 * DAY)
    one(db, "ff_trim_retention")
    assert left(db) == {long}
    assert short not in left(db)


def test_every_kind_of_end_is_trimmed_and_nothing_that_lives(db, clock):
    now = clock.freeze()
    alive = {create(db, delay_ms=100 * DAY), create(db, lane="x")}
    one(db, "ff_cancel_execution", execution_id=create(db))
    one(db, "ff_fail", handle=(create(db), take(db))[1]["handle"])
    create(db, deadline_at_ms=now + 1)
    running = (create(db), take(db))[0]
    clock.advance(1)
    rows(db, "ff_claim", lane_id="default", worker_id="w", worker_instance_id="w")
    clock.advance(2 * DAY)
    assert one(db, "ff_trim_retention")["processed"] == 3
    assert left(db) == alive | {running}


def test_the_oldest_go_first_and_more_says_when_to_call_again(db, clock):
    clock.freeze()
    ended = []
    for _ in range(3):
        ended.append(finish(db))
        clock.advance(1)
    clock.advance(DAY)
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


def test_a_row_that_somebody_holds_is_passed_over(db, connect, clock):
    clock.freeze()
    held = finish(db)
    clock.advance(DAY)
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
    clock.advance(DAY)
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
        ({"retention_ms": None}, "invalid_input"),
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
