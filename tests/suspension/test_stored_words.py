"""Words that are stored in place of an enum: only listed ones, and one that is there anyway stops no other row."""

import psycopg
import pytest

from tests.sql import one, refused, rows, savepoint, violations
from tests.suspension.support import OPERATOR_ONLY, run, suspend, suspended

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
