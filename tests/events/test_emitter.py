"""Events: written with the change, in a gap-free order."""

import pytest

from tests.sql import create, events, execution, notifications, one, table, take, violations


def mute(db, family, *types):
    one(db, "ff_set_event_family", family=family, muted=list(types))


def test_a_muted_type_is_not_written_and_changes_nothing_else(db):
    mute(db, "lease", "renewed")
    eid = create(db)
    row = take(db)
    one(db, "ff_renew", handle=row["handle"])
    one(db, "ff_complete", handle=row["handle"])
    assert events(db, eid) == ["lease/acquired", "lease/released:complete", "completion/success"]
    assert execution(db, eid)["public_state"] == "completed"


def test_a_muted_family_is_silent(db):
    mute(db, "lease", "*")
    eid = create(db)
    one(db, "ff_complete", handle=take(db)["handle"])
    assert events(db, eid) == ["completion/success"]
    assert violations(db) == []


def test_events_carry_the_transaction_as_their_order(db):
    with db.transaction():
        eid = create(db)
        take(db)
        (event,) = table(db, "select *, pg_current_xact_id()::text::bigint as xid from ff_event")
    assert event["ord"] == event["xid"]
    assert execution(db, eid)["last_event_ord"] == event["ord"]
    assert event["gen"] == 1


@pytest.mark.read_committed("acts on a snapshot from before what it meets")
def test_an_early_transaction_that_acts_late_keeps_the_order_of_causes(db, connect):
    """The transaction with the smaller id comes second on this execution: its event must not sort first."""
    create(db)
    early = connect(autocommit=False)
    early.execute("select pg_current_xact_id()")
    row = take(db)
    one(early, "ff_renew", handle=row["handle"])
    early.commit()
    acquired, renewed = table(db, "select * from ff_event order by event_id")
    assert (acquired["event_type"], renewed["event_type"]) == ("acquired", "renewed")
    assert renewed["ord"] >= acquired["ord"]
    assert violations(db) == []


def test_a_rolled_back_change_leaves_no_event(db, connect):
    create(db)
    conn = connect(autocommit=False)
    take(conn)
    conn.rollback()
    assert table(db, "select * from ff_event") == []


@pytest.mark.own_session("LISTEN")
def test_a_family_that_notifies_at_commit_notifies_once_per_transaction(db, connect):
    one(db, "ff_set_event_family", family="lease", notify="commit")
    listener = connect()
    listener.execute("listen ff_event_lease")
    for _ in range(4):
        create(db)
    row = take(db)
    with db.transaction():
        for _ in range(3):
            take(db)
    one(db, "ff_renew", handle=row["handle"])  # a renewal never notifies
    one(db, "ff_renew_many", handles=[row["handle"]])
    assert notifications(listener) == [("ff_event_lease", ""), ("ff_event_lease", "")]


@pytest.mark.own_session("LISTEN")
def test_the_hot_path_sends_no_notification(db, connect):
    create(db)
    one(db, "ff_complete", handle=take(db)["handle"])  # a new lane notifies for its first execution
    listener = connect()
    for family in ("lease", "completion"):
        listener.execute(f"listen ff_event_{family}")
    listener.execute("listen ff_lane")
    create(db)
    one(db, "ff_complete", handle=take(db)["handle"])
    assert notifications(listener) == []
