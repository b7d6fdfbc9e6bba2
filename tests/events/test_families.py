"""What each family writes, when it notifies, how long it is kept."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.events.support import EMITTERS, FAMILIES, cycle, names, read, settle, stored
from tests.sql import create, events, one, refused, rows, table, take, violations
from tests.streams.support import append


def known(db, *lanes):
    """Lanes that have notified of their first execution. No worker here has what that one needs."""
    for lane in lanes or ["default"]:
        one(db, "ff_create_execution", lane_id=lane, required_capabilities=["another"])


def family(db, name, **args):
    return one(db, "ff_set_event_family", family=name, **args)


def test_what_is_not_given_is_kept(db):
    assert family(db, "lease") == {
        "family": "lease",
        "muted": [],
        "notify": "tick",
        "retention_ms": 604_800_000,
    }
    family(db, "lease", muted=["renewed"])
    family(db, "lease", notify="off")
    assert family(db, "lease", retention_ms=5) == {
        "family": "lease",
        "muted": ["renewed"],
        "notify": "off",
        "retention_ms": 5,
    }
    assert family(db, "lease", muted=[])["muted"] == []
    assert family(db, "lease", muted=["revoked", "*", "expired", "*"])["muted"] == ["*", "expired", "revoked"]


def test_the_defaults_of_the_families(db):
    assert {name: family(db, name)["notify"] for name in FAMILIES} == {
        "completion": "tick",
        "lease": "tick",
        "worker": "tick",
        "flow": "tick",
        "signal": "commit",
        "suspension": "commit",
        "operator": "commit",
    }


@pytest.mark.parametrize(
    "args",
    [
        {"family": "nonsense"},
        {"family": None},
        {"family": "lease", "muted": ["nonsense"]},
        {"family": "lease", "muted": ["success"]},
        {"family": "lease", "muted": [None]},
        {"family": "lease", "notify": "sometimes"},
        {"family": "lease", "notify": ""},
        {"family": "lease", "retention_ms": -1},
        {"family": "lease", "retention_ms": 2**53},
    ],
)
def test_what_cannot_be_set(empty, args):
    with refused("invalid_input"):
        rows(empty, "ff_set_event_family", **args)


def test_every_type_can_be_muted_and_the_state_goes_on_all_the_same(db):
    for name in FAMILIES:
        (types,) = table(db, "select ff__event_types(%s) as t", name)
        assert family(db, name, muted=types["t"])["muted"] == sorted(types["t"])
    row_id = create(db)
    row = take(db)
    one(db, "ff_renew", handle=row["handle"])
    one(db, "ff_complete", handle=row["handle"])
    assert events(db, row_id) == []
    assert one(db, "ff_read_execution_state", execution_id=row_id)["public_state"] == "completed"
    assert violations(db) == []


def test_renewals_alone_can_be_muted(db):
    family(db, "lease", muted=["renewed"])
    eid = create(db)
    row = take(db)
    one(db, "ff_renew", handle=row["handle"])
    assert events(db, eid) == ["lease/acquired"]
    assert violations(db) == []


@pytest.mark.own_session("asks the server about its own process")
@pytest.mark.parametrize(
    ("before", "first", "second"),
    [
        (
            ("completion", {"notify": "commit"}),
            ("lease", {"muted": ["acquired"]}),
            ("completion", {"notify": "tick"}),
        ),
        (("lease", {"muted": ["renewed"]}), ("completion", {"notify": "commit"}), ("lease", {"muted": []})),
    ],
)
def test_two_families_that_are_changed_at_once_are_both_heeded(db, connect, before, first, second):
    known(db)
    family(db, before[0], **before[1])
    one_hand, other_hand = connect(autocommit=False), connect()
    family(one_hand, first[0], **first[1])
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(family, other_hand, second[0], **second[1])
        query = "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
        while not other.done() and not table(db, query, other_hand.info.backend_pid):
            pass
        one_hand.commit()
        other.result(90)
    assert violations(db) == []
    channels = Channels(connect())
    cycle(db)
    assert names(stored(db)) == [
        *(["lease/acquired"] if first[0] == "completion" else []),
        "lease/released",
        "completion/success",
    ]
    assert channels.received() == ([("ff_event_completion", "")] if first[0] == "completion" else [])


def test_a_change_on_an_older_snapshot_is_refused(db, connect):
    conn = connect(autocommit=False)
    conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    conn.execute("select 1 from ff_event_family")
    family(db, "completion", retention_ms=5)
    with pytest.raises(psycopg.errors.SerializationFailure):
        family(conn, "lease", muted=["acquired"])
    conn.rollback()
    assert violations(db) == []


class Channels:
    """Every channel of the engine. `received` waits for a notification of its own, so an empty result is certain."""

    def __init__(self, conn, *more):
        self.conn = conn
        for channel in (*(f"ff_event_{name}" for name in FAMILIES), "ff_lane", "pyff_test_end", *more):
            conn.execute(f'listen "{channel}"')

    def received(self):
        self.conn.execute("notify pyff_test_end")
        found = []
        for note in self.conn.notifies(timeout=90):
            if note.channel == "pyff_test_end":
                return found
            found.append((note.channel, note.payload))
        raise AssertionError("the last notification did not arrive")


def hot_path(db):
    """Single and batch, with a retry, a pause and an unwatched stream. Returns the channel of the stream."""
    retry = {"retry_policy": {"max_retries": 1, "backoff": {"type": "fixed", "delay_ms": 0}}}
    create(db, policy=retry)
    row = take(db)
    append(db, row)
    one(db, "ff_renew", handle=row["handle"])
    one(db, "ff_progress", handle=row["handle"], percent=5)
    one(db, "ff_fail", handle=row["handle"])
    row = take(db)
    one(db, "ff_delay", handle=row["handle"], delay_ms=0)
    row = take(db)
    append(db, row, mode="best_effort_live")
    one(db, "ff_complete", handle=row["handle"])
    rows(db, "ff_create_executions", lane_id="default", payloads=[b"", b""])
    claimed = rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w-1")
    rows(db, "ff_complete_many", handles=[c["handle"] for c in claimed])
    one(db, "ff_register_worker", worker_id="w", worker_instance_id="w-1", lanes=["default"])
    return f"ff_stream_{row['execution_id'][-36:]}_1"


def notifying_calls(db):
    """The number of calls of pg_notify, counted in the functions that make them."""
    db.execute("create table test_notify (channel text)")
    db.execute(
        """
        create function test_pg_notify(text, text) returns void language sql
        as 'insert into test_notify values ($1)'
        """
    )
    for function in ("ff__notify_family", "ff__notify_stream", "ff__notify_lane"):
        (row,) = table(db, "select pg_get_functiondef(%s::regproc) as d", function)
        assert "pg_notify(" in row["d"]
        db.execute(row["d"].replace("pg_notify(", "test_pg_notify("))
    (others,) = table(
        db,
        """select count(*) as n from pg_proc
            where proname like 'ff\\_%%' and prosrc ~* '(\\mpg_notify|\\mnotify\\s+[a-z"])'
              and prosrc !~* 'test_pg_notify' and prosrc ~* 'pg_notify'""",
    )
    assert others["n"] == 0


@pytest.mark.own_session("LISTEN")
def test_the_hot_path_sends_no_notification_without_waiting_workers(db):
    known(db)
    notifying_calls(db)
    hot_path(db)
    assert table(db, "select * from test_notify") == []
    # The count can fail: it sees each of the three functions that notify.
    one(db, "ff_set_lane_state", lane_id="other", state="paused")
    assert rows(db, "ff_claim", lane_id="default", worker_id="w", worker_instance_id="w-1") == []
    create(db)
    row = take(db)
    one(db, "ff_watch_stream", execution_id=row["execution_id"], attempt_index=0)
    append(db, row)
    assert {r["channel"].rpartition("_")[0] for r in table(db, "select * from test_notify")} == {
        "ff_event",
        "ff",
        f"ff_stream_{row['execution_id'][-36:]}",
    }


@pytest.mark.own_session("LISTEN")
def test_no_channel_is_notified_while_the_hot_path_runs(db, connect):
    known(db)
    channels = Channels(connect())
    channel = hot_path(db)
    channels.conn.execute(f'listen "{channel}"')
    hot_path(db)
    assert channels.received() == []
    assert table(db, "select pg_notification_queue_usage() as n")[0]["n"] == 0


@pytest.mark.own_session("LISTEN")
def test_a_family_that_notifies_at_commit_notifies_once_per_transaction_with_an_event(db, connect):
    known(db)
    channels = Channels(connect())
    eid = create(db)
    with db.transaction():
        for priority in (5, 6, 7):
            one(db, "ff_change_priority", execution_id=eid, priority=priority)
    assert channels.received() == [("ff_event_operator", "")]
    one(db, "ff_change_priority", execution_id=eid, priority=7)
    assert channels.received() == []
    family(db, "operator", muted=["*"])
    one(db, "ff_change_priority", execution_id=eid, priority=8)
    assert channels.received() == []
    family(db, "operator", muted=[], notify="off")
    one(db, "ff_change_priority", execution_id=eid, priority=9)
    assert channels.received() == []


@pytest.mark.own_session("LISTEN")
def test_a_renewal_never_notifies_at_commit(db, connect):
    family(db, "lease", notify="commit")
    create(db)
    row = take(db)
    channels = Channels(connect())
    one(db, "ff_renew", handle=row["handle"])
    rows(db, "ff_renew_many", handles=[row["handle"]])
    assert names(stored(db)) == ["lease/acquired", "lease/renewed", "lease/renewed"]
    assert channels.received() == []


@pytest.mark.own_session("LISTEN")
def test_a_rolled_back_event_does_not_notify(db, connect):
    known(db)
    channels = Channels(connect())
    eid = create(db)
    conn = connect(autocommit=False)
    one(conn, "ff_change_priority", execution_id=eid, priority=5)
    conn.rollback()
    assert channels.received() == []


@pytest.mark.own_session("LISTEN")
def test_the_setting_silences_every_family(db, connect):
    for name in FAMILIES:
        family(db, name, notify="commit")
    one(db, "ff_set_setting", name="notify", value="off")
    channels = Channels(connect())
    cycle(db)
    one(db, "ff_set_lane_state", lane_id="other", state="paused")
    assert channels.received() == []


@pytest.mark.own_session("LISTEN")
def test_families_that_notify_by_tick_notify_once_for_new_events(db, connect):
    known(db)
    channels = Channels(connect())
    notify = "select ff__notify_due_families() as n"
    assert table(db, notify) == [{"n": 0}]
    cycle(db)
    cycle(db)
    assert channels.received() == []
    assert table(db, notify) == [{"n": 2}]
    assert sorted(channels.received()) == [("ff_event_completion", ""), ("ff_event_lease", "")]
    assert table(db, notify) == [{"n": 0}]
    assert channels.received() == []
    create(db)
    take(db)
    assert table(db, notify) == [{"n": 1}]
    assert channels.received() == [("ff_event_lease", "")]
    family(db, "completion", notify="off")
    cycle(db)
    assert table(db, notify) == [{"n": 1}]


@pytest.mark.own_session("LISTEN")
def test_a_late_event_notifies_and_a_notified_event_does_not_notify_again(db, connect):
    """The transaction began before one whose event was notified, so its event has an earlier place."""
    known(db, "default", "late")
    notify = "select ff__notify_due_families() as n"
    early = connect(autocommit=False)
    early.execute("select pg_current_xact_id()")
    cycle(db)
    assert table(db, notify) == [{"n": 2}]
    channels = Channels(connect())
    cycle(early, lane="late")
    early.commit()
    assert [e["event_id"] for e in stored(db, "completion")] == sorted(
        (e["event_id"] for e in stored(db, "completion")), reverse=True
    )
    assert table(db, notify) == [{"n": 2}]
    assert sorted(channels.received()) == [("ff_event_completion", ""), ("ff_event_lease", "")]
    assert table(db, notify) == [{"n": 0}]
    family(db, "completion", retention_ms=0)
    family(db, "lease", retention_ms=0)
    settle(db)
    one(db, "ff_trim_events", limit=4)
    assert table(db, notify) == [{"n": 0}]


class TestTrim:
    def test_what_is_older_than_its_family_keeps_goes(self, db, clock):
        clock.freeze()
        cycle(db)
        family(db, "lease", retention_ms=1000)
        clock.advance(999)
        settle(db)
        assert one(db, "ff_trim_events") == {"processed": 0, "errors": 0, "more": False}
        clock.advance(1)
        settle(db)
        assert one(db, "ff_trim_events") == {"processed": 2, "errors": 0, "more": False}
        assert names(read(db)) == ["completion/success"]
        clock.advance(604_800_000)
        settle(db)
        assert one(db, "ff_trim_events")["processed"] == 1
        assert stored(db) == []
        assert violations(db) == []

    def test_a_reader_that_has_not_come_that_far_is_told(self, db, clock):
        cycle(db)
        cycle(db)
        settle(db)
        leases, completions = read(db, "lease"), read(db, "completion")
        family(db, "lease", retention_ms=0)
        assert one(db, "ff_trim_events", limit=3)["processed"] == 3
        with refused("cursor_expired") as refusal:
            read(db, "lease", after=leases[1]["cursor"])
        assert refusal.detail["oldest_cursor"] == leases[2]["cursor"]
        assert read(db, "lease", after=leases[2]["cursor"]) == leases[3:]
        assert read(db, "lease", after=refusal.detail["oldest_cursor"]) == leases[3:]
        assert read(db, "lease") == leases[3:]
        # Another family does not mind; all families together do.
        assert read(db, "completion", after="e1.0.0.0") == completions
        with refused("cursor_expired") as refusal:
            read(db, after=completions[0]["cursor"])
        assert refusal.detail["oldest_cursor"] == leases[2]["cursor"]
        assert one(db, "ff_event_cursor", at="oldest")["cursor"] == leases[2]["cursor"]
        assert read(db, after=leases[2]["cursor"]) == [leases[3], completions[1]]
        with refused("cursor_expired"):
            rows(db, "ff_read_lease_events", after="e1.0.0.0")

    def test_portions(self, db):
        for _ in range(3):
            cycle(db)
        for name in ("lease", "completion"):
            family(db, name, retention_ms=0)
        settle(db)
        assert one(db, "ff_trim_events", limit=0) == {"processed": 0, "errors": 0, "more": False}
        assert one(db, "ff_trim_events", limit=4) == {"processed": 4, "errors": 0, "more": True}
        assert one(db, "ff_trim_events", limit=4) == {"processed": 4, "errors": 0, "more": True}
        assert one(db, "ff_trim_events", limit=4) == {"processed": 1, "errors": 0, "more": False}
        assert violations(db) == []
        for limit in (-1, 100_001, None):
            with refused("invalid_input"):
                one(db, "ff_trim_events", limit=limit)

    def test_only_a_prefix_goes_also_when_the_clock_went_back(self, db, clock):
        """An older event behind a newer one stays: trimming leaves no gap in the order."""
        clock.freeze()
        family(db, "completion", retention_ms=1000)
        cycle(db)
        clock.advance(5000)
        cycle(db)
        clock.advance(-5000)
        cycle(db)
        clock.advance(1000)
        settle(db)
        assert one(db, "ff_trim_events")["processed"] == 1
        assert len(read(db, "completion")) == 2
        assert violations(db) == []

    def test_what_is_held_back_stays(self, db, connect):
        family(db, "lease", retention_ms=0)
        family(db, "completion", retention_ms=0)
        holder = connect(autocommit=False)
        holder.execute("select pg_current_xact_id()")
        cycle(db)
        assert one(db, "ff_trim_events")["processed"] == 0
        holder.rollback()
        assert one(db, "ff_trim_events")["processed"] == 3

    def test_two_at_once_do_not_wait_for_each_other(self, db, connect):
        family(db, "lease", retention_ms=0)
        cycle(db)
        settle(db)
        first = connect(autocommit=False)
        assert one(first, "ff_trim_events")["processed"] == 2
        db.execute("set lock_timeout = '10s'")
        assert one(db, "ff_trim_events")["processed"] == 0
        first.commit()
        assert violations(db) == []


def test_the_invariants_see_events_that_cannot_be(db):
    db.execute(EMITTERS)
    cycle(db)
    assert violations(db) == []
    db.execute("update ff_event_log set event_type = 'nonsense' where event_type = 'acquired'")
    assert {v["invariant"] for v in violations(db)} >= {"event_words"}
    db.execute("update ff_event_family set trimmed_gen = 1, trimmed_ord = 9e15 where family = 'lease'")
    assert {v["invariant"] for v in violations(db)} >= {"event_words", "event_trimmed"}
    db.execute("update ff_event_log set gen = 5")
    assert "event_generation" in {v["invariant"] for v in violations(db)}
