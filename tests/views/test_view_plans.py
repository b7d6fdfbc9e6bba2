"""A page of a view is read by an index: whatever the size of the tables, only what is asked for is read."""

import uuid

import pytest

from tests.catalogue.test_plans import nodes
from tests.flows.graph import flow
from tests.flows.graph import nodes as members
from tests.sql import create, one, rows, table
from tests.suspensions.support import OPERATOR_ONLY, suspended

MANY = 1_000
ID = "01a1e5d4-d4fc-7ff8-8b8a-71126421d472"


@pytest.fixture
def plan(db, dsn):
    """
    The plan of a query as a reader gets it. These tables are small, and reading some of them as a whole would be
    cheaper; with that forbidden, it is still done where no index serves. In a database of its own (`dsn`): what other
    tests have left in a table, and rolled back, would be part of the costs.
    """
    db.execute("set enable_seqscan = off")
    db.execute("set jit = off")

    def explain(query):
        db.execute("set role ff_reader")
        found = table(db, f"explain (analyze, format json, timing off) {query}")
        db.execute("reset role")
        return found[0]["QUERY PLAN"][0]["Plan"]

    return explain


@pytest.fixture
def many_rows(db, clock):
    """Executions in every state, most of them ended; suspensions, flows and events among them."""
    clock.freeze()
    for lane in ("one", "two"):
        rows(db, "ff_create_executions", lane_id=lane, payloads=[b""] * (MANY // 2))
        claimed = rows(
            db, "ff_claim_many", lane_id=lane, worker_id="w", worker_instance_id="w-1", limit=MANY // 2
        )
        rows(db, "ff_complete_many", handles=[row["handle"] for row in claimed])
        for options in ({}, {"delay_ms": 60_000}, {"required_capabilities": ["gpu"]}):
            rows(db, "ff_create_executions", lane_id=lane, payloads=[b""] * 50, **options)
        clock.advance(1000)
    for _ in range(10):
        suspended(db, OPERATOR_ONLY, reason_code="manual_pause")
    for _ in range(20):
        members(db, flow(db), 1, lane="three")
    create(db, "three", tags={"team.name": "x"})
    db.execute("analyze")


def scans(plan):
    """(table, how, index, rows thrown away) of every scan of one of the engine's tables that was carried out."""
    return [
        (
            node["Relation Name"],
            node["Node Type"],
            node.get("Index Name"),
            node.get("Rows Removed by Filter", 0),
        )
        for node in nodes(plan)
        if node.get("Relation Name", "").startswith("ff_") and node["Actual Loops"]
    ]


SMALL = {
    "ff_lane_registry",
    "ff_queue",
    "ff_state_word",
    "ff_event_generation",
    "ff_worker_registry",
    "ff_event_family",
}

PAGES = {
    "execution by uuid": f"ff_v_execution where execution_uuid = '{ID}'",
    "execution by id and uuid": f"ff_v_execution where execution_uuid = right('{{fp:114}}:{ID}', 36)::uuid",
    "newest executions": "ff_v_execution order by execution_uuid desc limit 20",
    "newest executions of a lane": "ff_v_execution where lane_id = 'two' order by execution_uuid desc limit 20",
    "executions since": "ff_v_execution where execution_uuid > 'f0000000-0000-7000-8000-000000000000'"
    " order by execution_uuid limit 20",
    "ready on a lane": "ff_v_execution where ready_on = 'one' limit 20",
    "ready on a lane that has little": "ff_v_execution where ready_on = 'three'",
    "delayed on a lane": "ff_v_execution where lane_id = 'one' and timed and public_state = 'delayed'",
    "running on a lane": "ff_v_execution where lane_id = 'three' and timed and ownership_state = 'leased'",
    "members of a flow": f"ff_v_execution where flow_id = '{ID}'",
    "by tag": """ff_v_execution where tags @> '{"team.name": "x"}'""",
    "attempts of an execution": f"ff_v_attempt where execution_uuid = '{ID}'",
    "suspension by id": f"ff_v_suspension where suspension_id = '{ID}'",
    "suspensions of an execution": f"ff_v_suspension where execution_uuid = '{ID}' order by suspension_no",
    "flow by id": f"ff_v_flow where flow_id = '{ID}'",
    "newest flows": "ff_v_flow order by flow_id desc limit 20",
    "events of an execution": f"ff_v_event where execution_uuid = '{ID}' order by event_id",
    "newest events": "ff_v_event where family = 'lease' order by gen desc, ord desc, event_id desc limit 20",
    "figures of a lane": "ff_v_lane_stats where lane_id = 'three'",
}


def test_a_page_reads_no_table_as_a_whole(db, many_rows, plan):
    for page, query in PAGES.items():
        for table_name, how, index, wasted in scans(plan(f"select * from {query}")):
            if table_name not in SMALL:
                assert "Seq Scan" not in how, (page, table_name)
                assert wasted < 200, (page, table_name, how, index, wasted)


def test_an_execution_is_found_by_the_primary_key(db, many_rows, plan):
    found = scans(plan(f"select * from ff_v_execution where execution_uuid = '{uuid.uuid4()}'"))
    assert {(name, index) for name, _, index, _ in found} <= {
        ("ff_execution", "ff_execution_pkey"),
        ("ff_state_word", "ff_state_word_pkey"),
        ("ff_queue", "ff_queue_pkey"),
    }


def test_the_newest_page_is_read_from_the_end_of_the_index_without_a_sort(db, many_rows, plan):
    found = plan("select * from ff_v_execution order by execution_uuid desc limit 20")
    assert "Sort" not in {node["Node Type"] for node in nodes(found)}
    assert [
        (node["Scan Direction"], node["Actual Rows"])
        for node in nodes(found)
        if node.get("Index Name") == "ff_execution_pkey"
    ] == [("Backward", 20)]


def test_what_is_open_is_found_among_what_is_not(db, many_rows, plan):
    db.execute(
        "update ff_suspension set closed_at_ms = 1 where suspension_id not in"
        " (select suspension_id from ff_suspension limit 2)"
    )
    db.execute("analyze ff_suspension")
    db.execute("set enable_bitmapscan = off")
    found = scans(plan("select suspension_id from ff_v_suspension where open"))
    indexes = {index for name, _, index, _ in found if name == "ff_suspension"}
    assert indexes <= {"ff_suspension_open", "ff_suspension_listed", "ff_suspension_timeout"}
    assert indexes


def test_an_id_as_text_is_found_by_an_index_if_there_is_one(db, many_rows, plan):
    """The index that docs/dba.md offers to those who search by the text."""
    db.execute(
        "create index on ff_execution using hash"
        " (('{fp:' || get_byte(uuid_send(execution_id), 15)::text || '}:' || execution_id::text))"
    )
    eid = create(db, "one")
    found = plan(f"select public_state from ff_v_execution where execution_id = '{eid}'")
    assert found["Actual Rows"] == 1
    assert not [scan for scan in scans(found) if "Seq Scan" in scan[1]]


KINDS = [
    "parked_by_quota",
    "parked_by_budget",
    "held_by_operator",
    "lane_stopped",
    "no_worker",
    "no_capable_worker",
    "backlog",
    "lease_lapsed",
    "delay_over",
    "retry_far_away",
    "put_off",
    "deadline_passed",
    "suspended_for_ever",
    "suspension_overdue",
    "flow_not_started",
    "schedule_late",
    "schedule_failing",
]


def test_what_is_stuck_is_found_without_reading_what_is_not(db, many_rows, clock, plan):
    clock.advance(10**6)
    for kind in KINDS:
        found = plan(f"select * from ff_v_stuck where kind = '{kind}'")
        for table_name, how, index, wasted in scans(found):
            if table_name not in SMALL:
                assert "Seq Scan" not in how, (kind, table_name)
                assert wasted < 200, (kind, table_name, how, index, wasted)


def test_all_that_is_stuck_is_found_without_reading_what_is_not(db, many_rows, clock, plan):
    clock.advance(10**6)
    for table_name, how, index, wasted in scans(plan("select * from ff_v_stuck")):
        if table_name not in SMALL:
            assert "Seq Scan" not in how, table_name
            assert wasted < 200, (table_name, how, index, wasted)


def test_the_first_in_line_is_found_by_a_probe_however_long_the_line_is(db, many_rows, clock, plan):
    """Of each queue. Plans are those of large tables."""
    create(db, "one", policy={"quota_policy_id": quota(db)})
    clock.advance(10**6)
    db.execute("set enable_bitmapscan = off")
    db.execute("set enable_sort = off")
    found = plan("select * from ff_v_stuck where kind = 'no_worker'")
    queues = len(table(db, "select from ff_queue"))
    heads = len(table(db, "select distinct ready_in from ff_execution where ready_in is not null"))
    # Of each the first in line; and all are counted.
    waiting = len(table(db, "select from ff_exec_core where public_state = 'waiting'"))
    assert_ready_rows_read(db, found, heads + waiting, 2 * queues + waiting)


def test_the_oldest_of_a_lane_is_found_by_a_probe_of_each_priority(db, many_rows, plan):
    for n in range(100):
        create(db, "four", priority=n % 4)
    db.execute("set enable_bitmapscan = off")
    db.execute("set enable_sort = off")
    found = plan("select ready, oldest_ready_at from ff_v_lane_stats where lane_id = 'four'")
    # All are counted; a walk ends with a probe that finds nothing.
    assert_ready_rows_read(db, found, 100 + 4, 100 + 6)


def assert_ready_rows_read(db, found, least, most):
    """Before version 18 a plan has the rows of a loop as a rounded mean: what it says is a range."""
    probes = [node for node in nodes(found) if node.get("Index Name") == "ff_execution_ready"]
    assert probes
    read = sum(probe["Actual Rows"] * probe["Actual Loops"] for probe in probes)
    repeated = sum(probe["Actual Loops"] for probe in probes if probe["Actual Loops"] > 1)
    rounding = repeated / 2 if db.info.server_version < 180000 else 0
    assert read - rounding <= most
    assert read + rounding >= least


def quota(db):
    one(db, "ff_create_quota_policy", quota_policy_id="q")
    return "q"


def test_the_rate_of_a_lane_reads_a_bounded_number_of_events(db, many_rows, plan):
    db.execute("set enable_bitmapscan = off")
    found = plan("select * from ff_v_lane_stats")
    scanned = [node for node in nodes(found) if node.get("Relation Name") == "ff_event_log"]
    assert scanned
    for events in scanned:
        assert events["Index Name"] == "ff_event_log_pkey"
        assert events["Scan Direction"] == "Backward"
        assert events["Actual Rows"] <= 10_000
