"""Words that are stored in place of an enum: only listed ones, and one that is there anyway stops no other row."""

import psycopg
import pytest

from tests.sql import create, one, refused, rows, savepoint, take, violations
from tests.suspensions.support import OPERATOR_ONLY, run, suspend, suspended

COLUMNS = {
    "ff_suspension": [
        "outcome",
        "reason_code",
        "requested_by",
        "timeout_behavior",
        "close_reason",
        "resume_trigger",
    ],
    "ff_waitpoint": ["state"],
    "ff_signal": ["effect"],
}


def deliver(db, point):
    return one(
        db,
        "ff_deliver_signal",
        execution_id=point["execution_id"],
        waitpoint_id=point["waitpoint_id"],
        waitpoint_token=point["waitpoint_token"],
        signal_name="other",
    )


@pytest.mark.parametrize(("table", "column"), [(t, c) for t, columns in COLUMNS.items() for c in columns])
def test_a_word_outside_its_list_cannot_be_stored(db, table, column):
    claim, point = suspended(db)
    deliver(db, {**point, "execution_id": claim["execution_id"]})
    assert db.execute(f"select count(*) from {table}").fetchone()[0] == 1
    with pytest.raises(psycopg.errors.CheckViolation), savepoint(db):
        db.execute(f"update {table} set {column} = 'bogus'")


OTHERS = {
    "ff_edge": "upstream_outcome",
    "ff_flow_dispatch": "outcome",
    "ff_cancel_backlog": "cancellation_policy",
    "ff_stream_frame": "mode",
    "ff_stream_meta": "closed_reason",
    "ff_stream_summary": "patch_kind",
    "ff_budget_usage_dedup": "outcome",
}


@pytest.mark.parametrize("table", OTHERS)
def test_a_word_of_flows_streams_and_budgets_outside_its_list_cannot_be_stored(db, connect, table):
    flow_id = one(db, "ff_create_flow")["flow_id"]
    up, down = create(db, "up", flow_id=flow_id), create(db, flow_id=flow_id)
    edge = {"upstream_execution_id": up, "downstream_execution_id": down}
    one(db, "ff_add_dependency", flow_id=flow_id, **edge)
    handle = take(db, "up")["handle"]
    for mode, payload in (("durable", b"x"), ("durable_summary", b"{}")):
        one(db, "ff_append_frame", handle=handle, mode=mode, payload=payload)
    limits = {"dimensions": ["d"], "hard_limits": [9], "soft_limits": [0]}
    one(db, "ff_create_budget", budget_id="b", **limits)
    one(db, "ff_report_usage_admin", budget_id="b", deltas={"d": 1}, dedup_key="k")
    holder = connect(autocommit=False)
    holder.execute("select from ff_flow_core where flow_id = %s for update", [flow_id])
    one(db, "ff_complete", handle=handle)
    holder.rollback()
    other = one(db, "ff_create_flow")["flow_id"]
    create(db, flow_id=other)
    one(db, "ff_cancel_flow_header", flow_id=other)
    assert db.execute(f"select count(*) from {table}").fetchone()[0] > 0
    with pytest.raises(psycopg.errors.CheckViolation), savepoint(db):
        db.execute(f"update {table} set {OTHERS[table]} = 'bogus'")


@pytest.mark.parametrize("word", ["bogus", None])
def test_an_unknown_timeout_behavior_is_corrupt_and_stops_no_other_timeout(db, clock, word):
    clock.freeze()
    eids = []
    for behavior in ("fail", "fail", "cancel"):
        lease = run(db)
        suspend(db, lease["handle"], OPERATOR_ONLY, timeout_ms=10, timeout_behavior=behavior)
        eids.append(lease["execution_id"])
    db.execute("alter table ff_suspension drop constraint ff_suspension_words")
    db.execute(
        "update ff_suspension set timeout_behavior = %s where execution_id = %s",
        [word, eids[0].rsplit(":", maxsplit=1)[-1]],
    )
    assert {v["invariant"] for v in violations(db)} == {"suspension_words"}
    clock.advance(10)
    with refused("corrupt_state") as refusal:
        one(db, "ff_expire_suspension", execution_id=eids[0])
    assert (refusal.detail["execution_id"], refusal.detail["timeout_behavior"]) == (eids[0], word)
    assert one(db, "ff_sweep_suspensions") == {"processed": 2, "errors": 1, "more": False}
    states = [one(db, "ff_read_execution_state", execution_id=eid)["public_state"] for eid in eids]
    assert states == ["suspended", "failed", "cancelled"]
    assert one(db, "ff_resume_execution", execution_id=eids[0])["outcome"] == "resumed"
    assert len(rows(db, "ff_list_suspended")) == 0
