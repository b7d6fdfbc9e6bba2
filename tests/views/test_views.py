"""The plain views show what the functions say, as timestamps and with the ids that functions take."""

from datetime import UTC, datetime

import pytest

from tests.events.support import settle
from tests.flows.graph import flow, link, nodes
from tests.sql import create, one, rows, table, take
from tests.suspensions.support import suspended


def ms(at):
    """A timestamp of a view as the engine counts."""
    assert at.tzinfo is not None
    return None if at is None else round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def shown(db, view, **where):
    conditions = " and ".join(f"{name} = %s" for name in where) or "true"
    return table(db, f"select * from {view} where {conditions}", *where.values())


def uuid_of(execution_id):
    return execution_id.rsplit(":", maxsplit=1)[-1]


def agree(row, described):
    """Every column that both have, under its name or as a time."""
    compared = 0
    for name, value in row.items():
        if name in described:
            assert value == described[name], name
            compared += 1
        elif f"{name}_ms" in described:
            assert (None if value is None else ms(value)) == described[f"{name}_ms"], name
            compared += 1
    return compared


def test_an_execution_is_shown_as_it_is_described(db, clock):
    clock.freeze()
    options = {
        "namespace": "ns",
        "priority": 3,
        "tags": {"team.name": "x"},
        "payload": b"123",
        "creator": "me",
    }
    eid = create(db, "lane", deadline_at_ms=clock.now() + 10**6, required_capabilities=["gpu"], **options)
    for step in ("created", "claimed", "completed"):
        if step == "claimed":
            lease = take(db, "lane", capabilities=["gpu"])
        elif step == "completed":
            one(db, "ff_complete", handle=lease["handle"], result=b"4567")
        clock.advance(1234)
        (row,) = shown(db, "ff_v_execution", execution_id=eid)
        assert agree(row, one(db, "ff_describe_execution", execution_id=eid)) >= 40
        assert shown(db, "ff_v_execution", execution_uuid=uuid_of(eid)) == [row]
        assert row["payload_bytes"] == 3
    (attempt,) = shown(db, "ff_v_attempt", execution_uuid=uuid_of(eid))
    assert agree(attempt, rows(db, "ff_list_attempts", execution_id=eid)[0]) >= 18
    assert (attempt["execution_id"], attempt["result_bytes"]) == (eid, 4)


def test_executions_are_paged_by_time(db, clock):
    clock.freeze()
    made = []
    for _ in range(5):
        made.append(create(db))
        clock.advance(1)
    query = "select execution_id from ff_v_execution order by execution_uuid desc limit 3"
    assert [row["execution_id"] for row in table(db, query)] == made[:1:-1]


def test_a_suspension_is_open_until_it_ends(db, clock):
    clock.freeze()
    claim, wait = suspended(db, timeout_ms=60_000)
    (row,) = shown(db, "ff_v_suspension", execution_id=claim["execution_id"])
    (listed,) = rows(db, "ff_list_suspended")
    assert agree(row, listed) >= 8
    assert row["open"]
    assert row["waitpoints"] == 1
    assert row["suspension_id"] == wait["suspension_id"]
    one(db, "ff_cancel_execution", execution_id=claim["execution_id"])
    (row,) = shown(db, "ff_v_suspension", suspension_id=wait["suspension_id"])
    assert not row["open"]
    assert ms(row["closed_at"]) == clock.now()
    assert row["close_reason"] == "attempt_ended"


def test_a_flow_is_shown_with_its_last_projection(db):
    flow_id = flow(db, flow_kind="etl", hold=True)
    first, second = nodes(db, flow_id, 2)
    link(db, flow_id, first, second)
    one(db, "ff_start_flow", flow_id=flow_id)
    (row,) = shown(db, "ff_v_flow", flow_id=flow_id)
    assert row["projected_at"] is None
    one(db, "ff_project_flow_summary", flow_id=flow_id)
    (row,) = shown(db, "ff_v_flow", flow_id=flow_id)
    assert agree(row, one(db, "ff_describe_flow", flow_id=flow_id)) >= 28
    assert (row["members_waiting"], row["members_waiting_children"]) == (1, 1)


def test_events_are_shown_as_they_are_read(db, connect):
    eid = create(db, tags={"a.b": "c"})
    one(db, "ff_complete", handle=take(db)["handle"])
    one(db, "ff_register_worker", worker_id="w", worker_instance_id="w-1", lanes=["default"])
    settle(db)
    query = "select * from ff_v_event order by gen, ord, event_id"
    seen = table(db, query)
    read = rows(db, "ff_read_events")
    assert len(seen) == len(read) == 4
    for row, event in zip(seen, read, strict=True):
        assert agree(row, event) >= 22
    assert [row["execution_id"] for row in seen] == [eid] * 3 + [None]


def test_lanes_and_workers_are_shown_as_they_are_listed(db, clock):
    clock.freeze()
    create(db, "lane")
    one(db, "ff_set_lane_state", lane_id="lane", state="paused", reason="night")
    (row,) = shown(db, "ff_v_lane", lane_id="lane")
    assert agree(row, rows(db, "ff_list_lanes")[0]) == len(row)
    one(db, "ff_register_worker", worker_id="w", worker_instance_id="w-1", lanes=["lane"])
    for alive in (True, False):
        (row,) = shown(db, "ff_v_worker", worker_instance_id="w-1")
        (listed,) = rows(db, "ff_list_workers")
        assert agree(row, listed) >= 7
        assert row["alive"] is alive
        assert ms(row["last_heartbeat_at"]) == listed["last_heartbeat_ms"]
        clock.advance(30_000)


def test_a_time_as_far_away_as_the_engine_allows_is_shown(db):
    last = 253402300799999
    eid = create(db, deadline_at_ms=last, delay_until_ms=last - 1)
    (row,) = table(db, "select deadline_at::text, delay_until::text from ff_v_execution")
    assert row["deadline_at"].startswith("9999-12-31 23:59:59.999")
    assert one(db, "ff_describe_execution", execution_id=eid)["deadline_at_ms"] == last


def test_a_lanes_figures(db, clock):
    clock.freeze()
    eid = create(db, "a")
    clock.advance(5_000)
    create(db, "a")
    create(db, "a", delay_ms=60_000)
    create(db, "b")
    for _ in range(3):
        create(db, "c")
        one(db, "ff_complete", handle=take(db, "c")["handle"])
    one(db, "ff_set_lane_state", lane_id="b", state="paused")
    (row,) = shown(db, "ff_v_lane_stats", lane_id="a")
    assert (row["ready"], row["running"], row["lapsed"], row["delayed"]) == (2, 0, 0, 1)
    assert row["oldest_ready_age"].total_seconds() == 5
    assert row["oldest_ready_at"] == shown(db, "ff_v_execution", execution_id=eid)[0]["created_at"]
    take(db, "a", lease_ttl_ms=10_000)
    (row,) = shown(db, "ff_v_lane_stats", lane_id="a")
    assert (row["ready"], row["running"], row["oldest_ready_age"].total_seconds()) == (1, 1, 0)
    clock.advance(10_000)
    (row,) = shown(db, "ff_v_lane_stats", lane_id="a")
    assert (row["running"], row["lapsed"]) == (0, 1)
    figures = {row["lane_id"]: row for row in shown(db, "ff_v_lane_stats")}
    assert [figures[lane]["ended_per_minute"] for lane in "abc"] == [0, 0, 3]
    assert (figures["b"]["state"], figures["b"]["ready"], figures["c"]["oldest_ready_age"]) == (
        "paused",
        1,
        None,
    )
    clock.advance(60_000)
    assert shown(db, "ff_v_lane_stats", lane_id="c")[0]["ended_per_minute"] == 0


@pytest.mark.own_session("counts what its server process did")
def test_the_tables_of_the_engine_and_their_state(db, connect):
    for _ in range(50):
        create(db)
        row = take(db)
        one(db, "ff_renew", handle=row["handle"])
        one(db, "ff_complete", handle=row["handle"])
    db.execute("select pg_stat_force_next_flush()")
    db.execute("select 1")
    seen = {row["table_name"]: row for row in table(db, "select * from ff_v_bloat")}
    tables = table(
        db,
        "select relname from pg_class where relkind = 'r' and relname like 'ff\\_%%'"
        " and relnamespace = 'ff'::regnamespace",
    )
    assert set(seen) == {row["relname"] for row in tables}
    core = seen["ff_execution"]
    assert core["updates"] == 150
    assert 50 <= core["dead_tuples"] <= 150
    assert 0.3 <= core["hot_ratio"] <= 0.4  # the renewals
    assert core["vacuum_threshold"] == 2000  # of the table, not the server's 50
    assert seen["ff_schema_state"]["vacuum_threshold"] >= 50
    assert core["table_bytes"] > 0
    assert core["index_bytes"] > 0
    assert "fillfactor=70" in core["settings"]
    db.execute("vacuum analyze ff_execution")
    assert table(db, "select dead_tuples, last_vacuum from ff_v_bloat where table_name = 'ff_execution'")[0][
        "last_vacuum"
    ]


def test_budgets_quotas_and_maintenance_are_shown_as_functions_tell_them(db, clock):
    clock.freeze()
    one(
        db,
        "ff_create_budget",
        budget_id="b",
        dimensions=["cents", "tokens"],
        hard_limits=[5, 7],
        soft_limits=[0, 3],
    )
    for row, told in zip(
        table(db, "select * from ff_v_budget order by dimension"),
        sorted(rows(db, "ff_get_budget_status", budget_id="b"), key=lambda row: row["dimension"]),
        strict=True,
    ):
        assert agree(row, told) >= 15
    one(db, "ff_create_quota_policy", quota_policy_id="q", window_seconds=60, max_requests_per_window=3)
    (row,) = shown(db, "ff_v_quota")
    assert (row["quota_policy_id"], row["window_seconds"], row["max_requests_per_window"]) == ("q", 60, 3)
    assert ms(row["created_at"]) == clock.now()
    (step,) = shown(db, "ff_v_maintenance", name="sweep_delayed")
    assert (step["enabled"], step["last_run_at"], step["failing_rows"]) == (True, None, 0)
    assert step["run_interval"].total_seconds() == 0.75
    assert step["idle_since"] is not None
    clock.advance(1000)
    rows(db, "ff_tick")
    db.execute("insert into ff_reconciler_error values ('sweep_delayed', 'x', 0, 3, 'division by zero')")
    (step,) = shown(db, "ff_v_maintenance", name="sweep_delayed")
    assert ms(step["last_run_at"]) == ms(step["idle_since"]) == clock.now()
    assert (step["failing_rows"], step["example_error"]) == (1, "division by zero")
