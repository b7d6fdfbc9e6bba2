"""Reading events: one order, complete below the horizon, cursors valid for all families and filters."""

import re

import pytest

from tests.events.support import EMITTERS, FAMILIES, cycle, names, read, settle, stored
from tests.sql import create, events, one, refused, rows, table, take, violations

FACES = {
    "ff_read_completions": "completion",
    "ff_read_lease_events": "lease",
    "ff_read_suspension_events": "suspension",
    "ff_read_signal_events": "signal",
    "ff_read_operator_events": "operator",
    "ff_read_worker_events": "worker",
    "ff_read_flow_events": "flow",
}


@pytest.fixture
def every_family(db):
    """Two events of each family, in a known order; the execution they belong to."""
    db.execute(EMITTERS)
    flow = "018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    db.execute("insert into test_flow (flow_id) values (%s)", [flow])
    eid = create(db, tags={"a.b": "c"}, namespace="ns")
    take(db)
    for priority in (1, 2):
        one(db, "ff_change_priority", execution_id=eid, priority=priority)
    for family, kind in [("suspension", "suspended"), ("signal", "delivered"), ("suspension", "resumed")]:
        db.execute("select test_emit(%s, %s, %s)", [eid[-36:], family, kind])
    one(db, "ff_register_worker", worker_id="w", worker_instance_id="w-1", lanes=["default"])
    one(db, "ff_mark_worker_dead", worker_instance_id="w-1", reason="gone")
    for kind in ("created", "started"):
        db.execute("select test_emit_flow(%s, %s)", [flow, kind])
    one(db, "ff_cancel_execution", execution_id=eid, reason="why", source="flow_cascade")
    settle(db)
    return eid


def test_all_families_come_in_one_order(db, every_family):
    found = read(db)
    assert names(found) == [
        "lease/acquired",
        "operator/priority_changed",
        "operator/priority_changed",
        "suspension/suspended",
        "signal/delivered",
        "suspension/resumed",
        "worker/registered",
        "worker/marked_dead",
        "flow/created",
        "flow/started",
        "lease/released",
        "completion/cancelled",
    ]
    assert [e["event_id"] for e in found] == [e["event_id"] for e in stored(db)]
    assert {e["family"] for e in found} == set(FAMILIES)


def test_a_row_has_every_column_of_the_event(db, every_family):
    for found, event in zip(read(db), stored(db), strict=True):
        same = {k: v for k, v in event.items() if k not in ("gen", "ord", "partition_key", "execution_id")}
        wire = f"{{fp:{event['partition_key']}}}:{event['execution_id']}" if event["execution_id"] else None
        cursor = f"e1.{event['gen']}.{event['ord']}.{event['event_id']}"
        assert found == {**same, "execution_id": wire, "cursor": cursor}


@pytest.mark.parametrize("function", FACES)
def test_a_typed_face_shows_the_events_of_its_family_with_its_columns(db, every_family, function):
    found = rows(db, function, watermark=True)
    *expected, mark = read(db, FACES[function], watermark=True)
    assert len(expected) >= 1
    assert found == [{k: e[k] for k in found[0]} for e in [*expected, mark]]
    assert found[-1]["event_type"] == "watermark"
    assert rows(db, function, after=found[0]["cursor"]) == found[1:-1]


@pytest.mark.parametrize("family", [None, *FAMILIES])
def test_pages_of_any_size_are_the_whole(db, every_family, family):
    whole = read(db, family)
    for limit in (1, 2, 3, 5, 100):
        pages, after = [], None
        while page := read(db, family, after=after, limit=limit):
            pages += page
            after = page[-1]["cursor"]
        assert pages == whole


def test_a_cursor_of_one_family_is_good_for_every_other_and_every_filter(db, every_family):
    whole = read(db)
    for n, event in enumerate(whole):
        assert read(db, after=event["cursor"]) == whole[n + 1 :]
        for family in FAMILIES:
            rest = [e for e in whole[n + 1 :] if e["family"] == family]
            assert read(db, family, after=event["cursor"]) == rest
            assert read(db, family, after=event["cursor"], namespace="ns") == [
                e for e in rest if e["namespace"] == "ns"
            ]


def test_filters(db):
    mail = cycle(db, tags={"app.kind": "mail", "app.user": "1"}, namespace="a")
    sms = cycle(db, tags={"app.kind": "sms"}, namespace="b")
    plain = cycle(db)
    one(db, "ff_set_lane_state", lane_id="other", state="paused")
    settle(db)

    def who(**args):
        return {e["execution_id"] for e in read(db, **args)}

    assert who(tags={"app.kind": "mail"}) == {mail}
    assert who(tags={"app.kind": "sms"}) == {sms}
    assert who(tags={"app.kind": "mail", "app.user": "2"}) == set()
    assert who(tags={"app.user": "1"}, namespace="a") == {mail}
    assert who(tags={"app.user": "1"}, namespace="b") == set()
    assert who(namespace="default") == {plain}
    assert who(namespace="nobody") == set()
    assert who(family="operator") == {None}
    assert who(execution_id=sms) == {sms}
    assert names(read(db, execution_id=sms)) == [re.sub(":.*", "", e) for e in events(db, sms)]
    assert names(read(db, "lease", execution_id=sms)) == ["lease/acquired", "lease/released"]
    assert who(execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07") == set()
    assert who(execution_id="{fp:8}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07") == set()
    assert (
        names(read(db, event_types=["released", "success"])) == ["lease/released", "completion/success"] * 3
    )
    assert read(db, event_types=[]) == []
    for eid in (mail, sms, plain):
        partition = int(eid[4:].partition("}")[0])
        assert eid in who(partition=partition)
        assert all(
            found is None or found[4:].startswith(f"{partition}}}") for found in who(partition=partition)
        )


def test_tags_are_those_the_execution_had_when_it_happened(db):
    eid = create(db, tags={"a.b": "old"})
    row = take(db)
    one(db, "ff_set_execution_tags", execution_id=eid, tags={"a.b": "new"})
    one(db, "ff_complete", handle=row["handle"])
    settle(db)
    assert names(read(db, tags={"a.b": "old"})) == ["lease/acquired"]
    assert names(read(db, tags={"a.b": "new"})) == ["lease/released", "completion/success"]


def test_a_filter_that_lets_nothing_through_still_advances(db):
    for _ in range(4):
        cycle(db)
    settle(db)
    leases = read(db, "lease")
    after, steps = None, []
    for _ in range(20):
        (mark,) = read(db, "lease", after=after, namespace="nobody", max_scan=3, watermark=True)
        assert mark["event_type"] == "watermark"
        after = mark["cursor"]
        steps.append(mark["details"]["at_horizon"])
        if steps[-1]:
            break
    assert steps == [False, False, True]
    assert read(db, "lease", after=after) == []
    cycle(db)
    settle(db)
    assert names(read(db, "lease", after=after)) == ["lease/acquired", "lease/released"]
    (first,) = read(db, "lease", namespace="nobody", max_scan=3, watermark=True)
    assert first["cursor"] == leases[2]["cursor"]


def test_no_more_rows_are_looked_at_than_asked_for(db):
    for n in range(4):
        cycle(db, namespace="x" if n == 3 else "y")
    settle(db)
    assert read(db, "completion", namespace="x", max_scan=3) == []
    assert len(read(db, "completion", namespace="x", max_scan=4)) == 1
    assert len(read(db, "completion", max_scan=2)) == 2


def test_the_watermark_of_a_full_page_is_its_last_row_and_of_the_end_the_horizon(db):
    for _ in range(3):
        cycle(db)
    settle(db)
    *page, mark = read(db, limit=4, watermark=True)
    assert len(page) == 4
    assert (mark["cursor"], mark["details"]) == (page[-1]["cursor"], {"at_horizon": False})
    assert mark["event_id"] is None
    *page, mark = read(db, limit=4, watermark=True, event_types=["acquired", "released"], max_scan=100)
    assert (len(page), mark["cursor"]) == (4, page[-1]["cursor"])
    *page, mark = read(db, limit=10, watermark=True)
    assert mark["details"] == {"at_horizon": True}
    assert mark["cursor"] == one(db, "ff_event_cursor")["cursor"]
    assert read(db, limit=0, watermark=True) == []


def test_the_watermark_never_goes_back(db, connect):
    """A reader with an old snapshot, and a cursor from after it."""
    old = connect(autocommit=False)
    old.execute("set transaction isolation level repeatable read")
    old.execute("select 1")
    cycle(db)
    later = one(db, "ff_event_cursor")["cursor"]
    (mark,) = read(old, after=later, watermark=True)
    assert mark["cursor"] == later


def test_now_starts_with_what_comes(db):
    cycle(db)
    settle(db)
    assert read(db, after="now") == []
    cursor = one(db, "ff_event_cursor", at="now")["cursor"]
    eid = cycle(db)
    settle(db)
    assert {e["execution_id"] for e in read(db, after=cursor)} == {eid}
    assert one(db, "ff_event_cursor", at="oldest")["cursor"] == "e1.0.0.0"
    assert read(db, after="e1.0.0.0") == read(db)


def test_now_may_repeat_a_few_but_misses_none(db, connect):
    """Committed, but held back: it comes after a cursor that was taken later."""
    holder = connect(autocommit=False)
    holder.execute("select pg_current_xact_id()")
    eid = cycle(db)
    cursor = one(db, "ff_event_cursor")["cursor"]
    holder.rollback()
    assert {e["execution_id"] for e in read(db, after=cursor)} == {eid}


@pytest.mark.parametrize(
    "cursor",
    ["", "0", "e1", "e1.1.1", "e1.1.1.1.1", "e2.1.1.1", "e1.-1.1.1", "e1.1.+1.1", "e1.1.1.x", "e1.1.1.1\n", " e1.1.1.1",
     "e1.01.1.1", "e1.2147483648.1.1", "e1.1.9223372036854775808.1", "e1.1.1.9223372036854775808", "e1.٧.1.1", "NOW",
     "oldest", "e1." + "1" * 100],
)  # fmt: skip
def test_what_is_no_cursor(empty, cursor):
    with refused("invalid_cursor"):
        read(empty, after=cursor)
    with refused("invalid_cursor"):
        rows(empty, "ff_read_completions", after=cursor)


def test_a_cursor_of_a_generation_to_come_is_refused(db):
    assert read(db, after="e1.1.9223372036854775807.9223372036854775807") == []
    with refused("invalid_cursor"):
        read(db, after="e1.2.0.0")


@pytest.mark.parametrize(
    "args",
    [
        {"family": "nonsense"},
        {"family": ""},
        {"limit": -1},
        {"limit": 10_001},
        {"limit": None},
        {"max_scan": 0},
        {"max_scan": 1_000_001},
        {"max_scan": None},
        {"partition": -1},
        {"partition": 256},
        {"namespace": ""},
        {"namespace": "x" * 65},
        {"event_types": ["acquired", "nonsense"]},
        {"event_types": [None]},
        {"family": "completion", "event_types": ["acquired"]},
        {"watermark": None},
    ],
)
def test_what_may_not_be_asked(empty, args):
    with refused("invalid_input"):
        rows(empty, "ff_read_events", **args)


def test_tags_that_are_no_object_are_refused(db):
    with pytest.raises(Exception, match="p_tags must be a json object"):
        db.execute("select * from ff_read_events(p_tags => '[]')")
    with refused("invalid_execution_id"):
        read(db, execution_id="x")
    with refused("invalid_input"):
        one(db, "ff_event_cursor", at="then")
    with refused("invalid_input"):
        one(db, "ff_event_lag", family="x")


def test_the_limits_themselves_are_accepted(db):
    assert read(db, limit=10_000, max_scan=1_000_000, partition=0) == []
    assert read(db, partition=255) == []


def test_a_page_costs_as_much_as_it_holds_not_as_much_as_there_is(db):
    """Of 30000 events a page reads its own: each index in order, merged, and no further than needed."""
    for _ in range(10):
        rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 1000)
        claimed = rows(
            db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w-1", limit=1000
        )
        rows(db, "ff_complete_many", handles=[row["handle"] for row in claimed])
    settle(db)
    middle = stored(db)[15_000]
    cursor = f"e1.1.{middle['ord']}.{middle['event_id']}"
    for args in (
        {},
        {"after": cursor},
        {"family": "lease", "after": cursor},
        {"event_types": ["released"], "after": cursor},
        {"namespace": "default", "family": "completion"},
    ):
        for statistics in (False, True):
            if statistics:
                db.execute("analyze ff_event_log")
            read(db, limit=10, watermark=True, **args)  # plans
            before = _touched(db)
            assert len(read(db, limit=10, watermark=True, **args)) == 11
            # A look at an index costs some pages for each of the seven families.
            assert _touched(db) - before < 150, (args, statistics)


def _touched(db):
    db.execute("select pg_stat_force_next_flush()")
    (row,) = table(
        db,
        """select heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read as n
             from pg_statio_user_tables where relname = 'ff_event_log'""",
    )
    return row["n"]


def test_events_outlive_the_execution(db):
    eid = cycle(db)
    one(db, "ff_trim_retention", retention_ms=0)
    settle(db)
    assert names(read(db, execution_id=eid)) == ["lease/acquired", "lease/released", "completion/success"]


@pytest.mark.own_session("asks the server about its own process")
def test_the_lag_shows_who_holds_events_back(db, connect, clock):
    clock.freeze()
    eid = cycle(db)
    settle(db)
    assert len(read(db)) == 3
    holder = connect(autocommit=False)
    holder.execute("select pg_current_xact_id()")
    other = cycle(db)
    clock.advance(20)
    assert {e["execution_id"] for e in read(db)} == {eid}
    lag = one(db, "ff_event_lag")
    newest = max(e["ord"] for e in stored(db))
    assert (lag["newest_ord"], lag["held_back"]) == (newest, 3)
    assert lag["horizon"] <= newest
    assert lag["oldest_held_ms"] == 20
    assert (lag["holder_pid"], lag["holder_database"]) == (holder.info.backend_pid, db.info.dbname)
    assert one(db, "ff_event_lag", family="lease")["held_back"] == 2
    assert one(db, "ff_event_lag", family="worker")["held_back"] == 0
    assert one(db, "ff_event_lag", family="worker")["newest_ord"] is None
    holder.rollback()
    lag = one(db, "ff_event_lag")
    assert (lag["held_back"], lag["oldest_held_ms"]) == (0, None)
    assert (lag["holder_pid"], lag["holder_database"]) == (None, None)
    assert [e["execution_id"] for e in read(db)] == [eid] * 3 + [other] * 3


@pytest.mark.own_session("asks the server about its own process")
def test_of_several_writers_the_oldest_is_named(db, connect):
    """By the age of the transaction, not of the connection."""
    writers = [connect(autocommit=False) for _ in range(4)]
    oldest_first = [writers[n] for n in (2, 0, 3, 1)]
    for writer in oldest_first:
        writer.execute("select pg_current_xact_id()")
    for writer in oldest_first:
        assert one(db, "ff_event_lag")["holder_pid"] == writer.info.backend_pid
        writer.rollback()
    assert one(db, "ff_event_lag")["holder_pid"] is None


@pytest.mark.own_session("asks the server about its own process")
def test_a_writer_in_another_database_delays_delivery_and_loses_nothing(db, connect):
    holder = connect(autocommit=False, dbname="postgres")
    holder.execute("select pg_current_xact_id()")
    eid = cycle(db)
    assert read(db) == []
    lag = one(db, "ff_event_lag")
    assert (lag["holder_pid"], lag["holder_database"]) == (holder.info.backend_pid, "postgres")
    holder.commit()
    assert {e["execution_id"] for e in read(db)} == {eid}


def test_a_prepared_transaction_holds_events_too_and_is_named(db, connect):
    holder = connect(autocommit=False)
    holder.execute("create table test_x ()")
    holder.execute("prepare transaction 'test'")
    try:
        cycle(db)
        assert read(db) == []
        lag = one(db, "ff_event_lag")
        assert (lag["holder_pid"], lag["holder_database"]) == (None, db.info.dbname)
    finally:
        db.execute("rollback prepared 'test'")
    assert len(read(db)) == 3


def test_a_transaction_that_only_reads_holds_nothing(db, connect):
    reader = connect(autocommit=False)
    reader.execute("set transaction isolation level repeatable read")
    reader.execute("select 1")
    cycle(db)
    assert len(read(db)) == 3
    assert one(db, "ff_event_lag")["holder_pid"] is None


def test_a_late_commit_is_not_skipped(db, connect):
    """Event 1 commits after a reader has passed event 2: the plain id would lose it."""
    late = connect(autocommit=False)
    first = create(db)
    take(late)
    second = cycle(db, lane="other")
    seen = read(db)
    assert seen == []
    late.commit()
    assert {e["execution_id"] for e in read(db)} == {first, second}
    assert violations(db) == []


def test_a_lease_that_a_claim_finds_lapsed_ends_after_what_was_read_before(db, clock):
    clock.freeze()
    create(db)
    take(db, lease_ttl_ms=10)
    create(db)
    take(db)
    settle(db)
    last = read(db)[-1]["cursor"]
    clock.advance(10)
    take(db)
    settle(db)
    assert names(read(db, after=last)) == ["lease/expired", "lease/reclaimed"]


def test_stricter_isolation_reads_a_complete_prefix_too(db, connect):
    cycle(db)
    settle(db)
    for level in ("repeatable read", "serializable"):
        conn = connect(autocommit=False)
        conn.execute(f"set transaction isolation level {level}")
        before = read(conn)
        cycle(db)
        assert read(conn) == before
        conn.rollback()
