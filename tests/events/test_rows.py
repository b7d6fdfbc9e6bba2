"""How events are stored: one row per call, which readers split into events."""

import uuid

import pytest

from tests.events.support import names, read, settle, stored
from tests.sql import create, events, one, rows, table, take, violations

WORKER = {"worker_id": "w", "worker_instance_id": "w-1"}


def family(db, name, **args):
    one(db, "ff_set_event_family", family=name, **args)


def batch(db, size=5, **args):
    """Executions that were created, claimed and completed by three calls; their ids."""
    made = rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * size, **args)
    claimed = rows(db, "ff_claim_many", lane_id="default", limit=size, **WORKER)
    rows(db, "ff_complete_many", handles=[row["handle"] for row in claimed])
    return [row["execution_id"] for row in made]


def log(db):
    return table(db, "select family, event_type, lease_type, size from ff_event_log order by event_id")


def test_a_call_writes_one_row(db):
    ids = batch(db)
    assert log(db) == [
        {"family": "lease", "event_type": "acquired", "lease_type": None, "size": 5},
        {"family": "completion", "event_type": "success", "lease_type": "released", "size": 5},
    ]
    for eid in ids:
        assert events(db, eid) == ["lease/acquired", "lease/released:complete", "completion/success"]
    create(db)
    one(db, "ff_complete", handle=take(db)["handle"])
    assert [row["size"] for row in log(db)] == [5, 5, None, None]
    assert len(stored(db)) == 18
    assert len({event["event_id"] for event in stored(db)}) == 18
    assert violations(db) == []


def test_a_batch_stores_what_single_calls_store(db):
    """Executions that differ in all that a row may share: lane, namespace, flow, tags, attempts."""
    flow = str(uuid.uuid4())
    one(db, "ff_create_flow", flow_id=flow)
    for lane in ("batch", "single"):
        create(db, lane, namespace="one")
        create(db, lane, namespace="two", tags={"a.b": "c"})
        create(db, lane, namespace="one", flow_id=flow)
        one(db, "ff_delay", handle=take(db, lane, namespace="two")["handle"], delay_ms=0)
        if lane == "batch":
            claimed = rows(db, "ff_claim_many", lane_id=lane, limit=10, **WORKER)
            rows(db, "ff_renew_many", handles=[row["handle"] for row in claimed])
            rows(db, "ff_complete_many", handles=[row["handle"] for row in claimed])
        else:
            claimed = [take(db, lane) for _ in range(3)]
            for row in claimed:
                one(db, "ff_renew", handle=row["handle"])
            for row in claimed:
                one(db, "ff_complete", handle=row["handle"])
    same = ("family", "event_type", "namespace", "flow_id", "tags", "attempt_index", "reason", "outcome",
            "lease_epoch", "worker_id", "worker_instance_id", "details")  # fmt: skip

    def of(lane):
        found = table(db, "select * from ff_event where lane_id = %s", lane)
        assert all(event["partition_key"] == event["execution_id"].bytes[-1] for event in found)
        return sorted(repr([event[key] for key in same]) for event in found)

    assert of("batch") == of("single")
    assert violations(db) == []


@pytest.mark.parametrize("name", ["lease", "completion", None])
def test_a_cursor_may_stop_within_a_row(db, name):
    batch(db, 7)
    create(db)
    one(db, "ff_complete", handle=take(db)["handle"])
    settle(db)
    whole = [event["event_id"] for event in stored(db, name)]
    for limit in (1, 2, 3, 5):
        found, after = [], None
        while page := read(db, name, after=after, limit=limit):
            assert len(page) <= limit
            found += [event["event_id"] for event in page]
            after = page[-1]["cursor"]
        assert found == whole


def test_what_is_scanned_is_counted_in_events(db):
    batch(db, 10)
    settle(db)
    page = read(db, "lease", event_types=["released"], max_scan=12, watermark=True)
    assert names(page[:-1]) == ["lease/released"] * 2
    page = read(db, "lease", event_types=["released"], max_scan=12, watermark=True, after=page[-1]["cursor"])
    assert names(page[:-1]) == ["lease/released"] * 8


@pytest.mark.parametrize("size", [1, 3])
def test_a_muted_half_of_a_row_does_not_show(db, size):
    family(db, "lease", muted=["released"])
    first = batch(db, size)
    family(db, "lease", muted=[])
    family(db, "completion", muted=["success"])
    second = batch(db, size)
    family(db, "lease", muted=["*"])
    third = batch(db, size)
    assert {tuple(events(db, eid)) for eid in first} == {("lease/acquired", "completion/success")}
    assert {tuple(events(db, eid)) for eid in second} == {("lease/acquired", "lease/released:complete")}
    assert {tuple(events(db, eid)) for eid in third} == {()}
    for event in stored(db):
        assert (event["lease_id"] is None) == (event["family"] == "completion")


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(("first", "second"), [("lease", "completion"), ("completion", "lease")])
def test_each_half_of_a_row_is_kept_as_long_as_its_family_says(db, first, second, size):
    ids = batch(db, size)
    settle(db)
    before = {event["event_id"]: event for event in stored(db, second)}
    family(db, first, retention_ms=0)
    assert one(db, "ff_trim_events")["processed"] == size * (2 if first == "lease" else 1)
    assert stored(db, first) == []
    assert {event["event_id"]: event for event in stored(db, second)} == before
    assert violations(db) == []
    settle(db)
    assert [event["event_id"] for event in read(db, second)] == sorted(before)
    assert {e for eid in ids for e in names(read(db, second, execution_id=eid))} == set(
        names(stored(db, second))
    )
    family(db, second, retention_ms=0)
    assert one(db, "ff_trim_events")["processed"] == len(before)
    assert table(db, "select from ff_event_log") == []
    assert violations(db) == []


def test_a_trim_takes_whole_rows(db):
    batch(db, 6)
    settle(db)
    family(db, "lease", retention_ms=0)
    assert one(db, "ff_trim_events", limit=4) == {"processed": 6, "errors": 0, "more": True}
    assert {event["event_type"] for event in stored(db, "lease")} == {"released"}
    (kept,) = table(db, "select trimmed_event_id as id from ff_event_family where family = 'lease'")
    assert kept["id"] < min(event["event_id"] for event in stored(db, "lease"))
    assert violations(db) == []
    assert one(db, "ff_trim_events", limit=4)["processed"] == 6
    assert one(db, "ff_trim_events", limit=4)["processed"] == 0


def test_events_of_an_execution_are_found_however_far_apart_the_ids_of_its_batch_are(db, clock):
    """Ids carry a time: batches are found by the times of theirs, in classes of length."""
    clock.freeze()
    wanted = {}
    for gap in (
        0,
        900,
        1000,
        1001,
        15_000,
        200_000,
        300_000,
        5_000_000,
        70_000_000,
        1_000_000_000,
        2_000_000_000,
    ):
        early = create(db)
        clock.advance(gap)
        late = create(db)
        claimed = rows(db, "ff_claim_many", lane_id="default", limit=2, **WORKER)
        rows(db, "ff_complete_many", handles=[row["handle"] for row in claimed])
        assert {row["execution_id"] for row in claimed} == {early, late}
        wanted[gap] = (early, late)
    settle(db)
    for gap, ids in wanted.items():
        for eid in ids:
            assert names(read(db, execution_id=eid)) == [
                "lease/acquired",
                "lease/released",
                "completion/success",
            ], gap
    # Ids that are far apart do not share a row.
    sizes = table(db, "select size, (batch).span from ff_event_log order by event_id")
    assert [row["size"] for row in sizes] == [2] * 20 + [None] * 4
    assert {row["span"] for row in sizes} == {0, 1, 2, 3, 4, 5, None}
    unknown = f"{{fp:0}}:{str(uuid.uuid4())[:-2]}00"
    assert read(db, execution_id=unknown) == []


def test_events_of_one_execution_are_found_without_reading_the_others(db):
    for _ in range(60):
        ids = batch(db, 20)
    settle(db)
    db.execute("vacuum analyze ff_event_log")
    read(db, execution_id=ids[3])
    before = touched(db)
    assert len(read(db, execution_id=ids[3])) == 3
    assert touched(db) - before < 60


def test_a_tick_reads_as_much_whether_or_not_completions_hold_ends_of_leases(db):
    for row in rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 1000):
        one(db, "ff_cancel_execution", execution_id=row["execution_id"])
    notify = "select ff__notify_due_families() as n"
    assert table(db, notify) == [{"n": 1}]
    query = "select seq_tup_read + idx_tup_fetch as n from pg_stat_user_tables where relname = 'ff_event_log'"
    db.execute("select pg_stat_force_next_flush()")
    (before,) = table(db, query)
    assert table(db, notify) == [{"n": 0}]
    db.execute("select pg_stat_force_next_flush()")
    (after,) = table(db, query)
    assert after["n"] - before["n"] <= 300


def touched(db):
    db.execute("select pg_stat_force_next_flush()")
    (row,) = table(
        db,
        """select heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read
                  + coalesce(toast_blks_hit + toast_blks_read, 0) as n
             from pg_statio_user_tables where relname = 'ff_event_log'""",
    )
    return row["n"]


def test_a_batch_of_more_than_a_row_holds_is_split(db):
    flow = str(uuid.uuid4())
    one(db, "ff_create_flow", flow_id=flow)
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * 1500, flow_id=flow)
    one(db, "ff_cancel_flow", flow_id=flow, policy="cancel_all", max_members=2000)
    ids = [event["event_id"] for event in stored(db, "completion")]
    assert len(ids) == len(set(ids)) == 1500
    assert sorted(row["size"] for row in log(db) if row["family"] == "completion") == [500, 1000]
    assert violations(db) == []


@pytest.mark.parametrize(
    "damage",
    [
        "batch.span = 5 - (batch).span, batch.last_id_ms = (batch).first_id_ms + 2000000",
        "batch.last_id_ms = (batch).last_id_ms + 1",
        "batch.first_id_ms = (batch).first_id_ms - 1",
        "batch.lease_epochs = '{1}'",
        "batch.execution_ids = (batch).execution_ids[2:]",
        "size = 4",
        "size = null",
    ],
)
def test_the_invariants_see_a_row_whose_parts_do_not_fit(db, damage):
    batch(db)
    assert violations(db) == []
    db.execute(f"update ff_event_log set {damage} where family = 'lease'")
    assert "event_batch" in {v["invariant"] for v in violations(db)}
