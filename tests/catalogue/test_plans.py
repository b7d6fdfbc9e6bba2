"""The statements inside the hot functions read only the rows they need, even with stale statistics."""

import json
import re

import pytest
from psycopg.types.json import Jsonb

from tests.sql import claim, create, one, rows, table, take

MANY = 300


@pytest.fixture
def explained(db, dsn):
    """Runs a function under auto_explain and gives the plan of every statement that ran inside it. In a database of
    its own: what others have left in a table, and rolled back, would be part of the costs."""
    db.execute("load 'auto_explain'")
    for name, value in {
        "log_min_duration": "0",
        "log_analyze": "on",
        "log_nested_statements": "on",
        "log_format": "json",
        "log_level": "notice",
        "log_timing": "off",
    }.items():
        db.execute(f"set auto_explain.{name} = '{value}'")
    plans = []

    def notice(diagnostic):
        found = re.search(r"plan:\n(\{.*\})\s*$", diagnostic.message_primary or "", re.S)
        if found:
            plans.append(json.loads(found[1]))

    db.add_notice_handler(notice)
    # Planned while the tables were empty, as were the statistics made: the plans must be right all the same.
    db.execute("analyze")
    claim(db)

    def run(function, **args):
        plans.clear()
        found = rows(db, function, **args)
        assert len(plans) > 2, "auto_explain said nothing"
        return found, list(plans)

    yield run
    db.execute("set auto_explain.log_min_duration = -1")
    db.remove_notice_handler(notice)


def nodes(plan):
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def wasted(plans):
    """Plan nodes that scanned a table of the engine, or discarded rows that they read."""
    for plan in plans:
        for node in nodes(plan["Plan"]):
            table_name = node.get("Relation Name", "")
            # ff_event_generation has one row, as has the sequence, which one claim in a thousand reads.
            if (
                table_name.startswith("ff_")
                and table_name not in ("ff_event_generation", "ff_turn_seq")
                and ("Seq Scan" in node["Node Type"] or node.get("Rows Removed by Filter", 0) > 2)
            ):
                yield plan["Query Text"], table_name, node["Node Type"], node.get("Rows Removed by Filter")


def hollow(db):
    """Statistics over pages of uncommitted rows: the planner then estimates any number of rows as one."""
    with db.transaction(force_rollback=True):
        rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * MANY)
        rows(db, "ff_claim_many", lane_id="default", worker_id="w", worker_instance_id="w-1", limit=MANY)
    db.execute("analyze")


def many_rows(db, clock):
    """A lane with many executions in every state that a claim must not read."""
    clock.freeze()
    for _ in range(3):
        one_batch = rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * MANY)
        assert len(one_batch) == MANY
    leased = rows(
        db,
        "ff_claim_many",
        lane_id="default",
        worker_id="w",
        worker_instance_id="w-1",
        limit=2 * MANY,
    )
    rows(db, "ff_complete_many", handles=[r["handle"] for r in leased[:MANY]])
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * MANY, delay_ms=60_000)
    rows(
        db,
        "ff_create_executions",
        lane_id="default",
        payloads=[b""] * MANY,
        required_capabilities=["gpu"],
    )
    rows(
        db,
        "ff_create_executions",
        lane_id="default",
        payloads=[b""] * MANY,
        deadline_at_ms=clock.now() + 10**7,
    )


def test_a_create_a_claim_a_renewal_and_a_completion_read_only_what_they_want(db, clock, explained):
    hollow(db)
    many_rows(db, clock)
    plans = []
    _, ran = explained("ff_create_execution", lane_id="default")
    plans += ran
    (row,), ran = explained("ff_claim", lane_id="default", worker_id="w", worker_instance_id="w-1")
    plans += ran
    assert any(
        node.get("Index Name") == "ff_execution_ready" for plan in ran for node in nodes(plan["Plan"])
    ), "the claim did not use the ready index"
    assert any(node.get("Index Name") == "ff_execution_due" for plan in ran for node in nodes(plan["Plan"]))
    assert not any(node["Node Type"] == "Sort" for plan in ran for node in nodes(plan["Plan"]))
    _, ran = explained("ff_renew", handle=row["handle"])
    plans += ran
    _, ran = explained("ff_complete", handle=row["handle"])
    plans += ran
    assert list(wasted(plans)) == []


@pytest.mark.parametrize("capabilities", [[], ["arm"], ["gpu"]])
def test_a_batch_reads_only_what_it_wants(db, clock, explained, capabilities):
    hollow(db)
    many_rows(db, clock)
    worker = {"worker_id": "w", "worker_instance_id": "w-1", "capabilities": capabilities}
    plans = []
    _, ran = explained("ff_create_executions", lane_id="default", payloads=[b""] * 10)
    plans += ran
    found, ran = explained("ff_claim_many", lane_id="default", limit=10, **worker)
    plans += ran
    handles = [r["handle"] for r in found]
    _, ran = explained("ff_renew_many", handles=handles)
    plans += ran
    _, ran = explained("ff_complete_many", handles=handles)
    plans += ran
    assert list(wasted(plans)) == []


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_a_claim_over_many_sets_reads_little_more_than_it_takes(db, clock, explained, function):
    clock.freeze()
    hollow(db)
    able = {"capabilities": [f"set{n}" for n in range(10)]}
    for token in able["capabilities"]:
        rows(
            db, "ff_create_executions", lane_id="default", payloads=[b""] * 100, required_capabilities=[token]
        )
    limit = {"limit": 20} if function == "ff_claim_many" else {}
    _, plans = explained(
        function, lane_id="default", worker_id="w", worker_instance_id="w-1", **limit, **able
    )
    for plan in plans:
        read = [
            node["Actual Rows"] * node["Actual Loops"]
            for node in nodes(plan["Plan"])
            if node.get("Index Name") == "ff_execution_ready"
        ]
        assert sum(read) <= limit.get("limit", 1) + 10, plan["Query Text"]
        assert not any(node["Node Type"] == "Sort" for node in nodes(plan["Plan"])) or not read
    assert list(wasted(plans)) == []


@pytest.mark.parametrize("function", ["ff_claim", "ff_claim_many"])
def test_what_a_claim_over_many_sets_may_not_take_is_not_looked_up_one_by_one(db, clock, explained, function):
    clock.freeze()
    hollow(db)
    able = {"capabilities": ["arm", "gpu"]}
    for namespace in ("other", "default"):
        for token in able["capabilities"]:
            batch = {"payloads": [b""] * 100, "required_capabilities": [token], "namespace": namespace}
            rows(db, "ff_create_executions", lane_id="default", **batch)
        clock.advance(1)
    worker = {"worker_id": "w", "worker_instance_id": "w-1", "namespace": "default"}
    found, plans = explained(function, lane_id="default", **worker, **able)
    assert {row["namespace"] for row in found} == {"default"}
    for plan in plans:
        looks = [
            node["Actual Loops"]
            for node in nodes(plan["Plan"])
            if node.get("Index Name") == "ff_execution_pkey"
        ]
        assert sum(looks) <= 10, plan["Query Text"]


@pytest.mark.own_session("has its plans told to the session that asks, one transaction after the other")
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_batch_that_was_planned_while_the_tables_were_small_reads_no_more_later(
    db, dsn, clock, explained, before
):
    """With one row a scan of a whole index is as cheap as a look-up. The plan must not be one: it stays for hours.

    On a database of its own (`dsn`): what ANALYZE writes is not rolled back."""
    worker = {"worker_id": "w", "worker_instance_id": "w-1"}
    rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * before)
    small = rows(db, "ff_claim_many", lane_id="default", limit=10, **worker)
    db.execute("analyze ff_execution, ff_attempt_past, ff_event_log")
    for function in ("ff_renew_many", "ff_complete_many"):
        rows(db, function, handles=[r["handle"] for r in small])
    many_rows(db, clock)
    found, plans = explained("ff_claim_many", lane_id="default", limit=10, **worker)
    for function in ("ff_renew_many", "ff_complete_many"):
        plans += explained(function, handles=[r["handle"] for r in found])[1]
    assert list(wasted(plans)) == []
    for plan in plans:
        for node in nodes(plan["Plan"]):
            if node.get("Relation Name") in ("ff_execution", "ff_attempt_past"):
                assert node["Actual Rows"] * node["Actual Loops"] <= 64, plan["Query Text"]


def test_what_is_due_is_found_without_reading_what_is_not(db, clock, explained):
    many_rows(db, clock)
    leased = table(
        db,
        "select ff__encode_handle(partition_key, execution_id, current_attempt_index, lease_id,"
        " lease_epoch, current_attempt_id) as h from ff_exec_core where lifecycle_phase = 'active' limit 150",
    )
    rows(db, "ff_complete_many", handles=[r["h"] for r in leased])
    clock.advance(40_000)  # the leases ran out, the delays did not end
    found, ran = explained("ff_claim", lane_id="default", worker_id="w", worker_instance_id="w-1")
    assert found[0]["handle_kind"] == "reclaimed"  # it was created first
    assert list(wasted(ran)) == []


def test_the_leases_of_a_worker_are_found_without_reading_what_has_ended_or_is_ready(db, clock, explained):
    hollow(db)
    many_rows(db, clock)
    (row,), plans = explained("ff_mark_worker_dead", worker_instance_id="w-1", revoke_leases=True)
    assert row["leases_revoked"] == MANY
    (plan,) = [plan for plan in plans if "order by c.execution_id" in plan["Query Text"]]
    read = [node for node in nodes(plan["Plan"]) if node.get("Relation Name") == "ff_execution"]
    assert [node.get("Index Name") for node in read] == ["ff_execution_due"]
    assert list(wasted([p for p in plans if p is not plan])) == []


def many_limited_rows(db, clock):
    """A policy with many that run and two hundred slots left, a full one with many that are parked, and a budget."""
    many_rows(db, clock)
    worker = {"worker_id": "w", "worker_instance_id": "w-1"}
    one(db, "ff_create_quota_policy", quota_policy_id="q", max_concurrent=200)
    one(db, "ff_create_quota_policy", quota_policy_id="full", max_concurrent=1)
    for lane, name, count in (
        ("held", "q", 3),
        ("busy", "full", 1),
        ("busy", "full", MANY),
        ("limited", "q", MANY),
    ):
        given = {"quota_policy_id": name}
        rows(db, "ff_create_executions", lane_id=lane, payloads=[b""] * count, policy=given)
        if lane != "limited":
            rows(db, "ff_claim_many", lane_id=lane, limit=3, **worker)
    while rows(db, "ff_claim", lane_id="busy", **worker) or table(
        db,
        "select 1 as x from ff_exec_core where lane_id = 'busy' and blocking_reason = 'waiting_for_worker' limit 1",
    ):
        pass
    rows(db, "ff_create_executions", lane_id="busy", payloads=[b""] * MANY)


def test_claims_of_work_that_needs_admission_read_only_what_they_want(db, clock, explained):
    many_limited_rows(db, clock)
    worker = {"worker_id": "w", "worker_instance_id": "w-1"}
    plans = []
    (row,), ran = explained("ff_claim", lane_id="limited", **worker)
    plans += ran
    used = {node.get("Index Name") for plan in ran for node in nodes(plan["Plan"])}
    assert {"ff_execution_ready", "ff_execution_limits"} <= used
    _, ran = explained("ff_complete", handle=row["handle"])
    plans += ran
    found, ran = explained("ff_claim_many", lane_id="limited", limit=5, **worker)
    plans += ran
    assert len(found) == 5
    _, ran = explained("ff_complete_many", handles=[row["handle"] for row in found])
    plans += ran
    # Others on a lane where a full policy has many that are parked.
    (row,), ran = explained("ff_claim", lane_id="busy", **worker)
    plans += ran
    assert list(wasted(plans)) == []


def test_admission_and_its_sweep_read_only_what_they_want(db, clock, explained):
    many_limited_rows(db, clock)
    plans = []
    eid = create(db)
    for function, args in (
        ("ff_check_admission", {"quota_policy_id": "q", "execution_id": eid}),
        ("ff_release_admission", {"quota_policy_id": "q", "execution_id": eid}),
        ("ff_read_quota_policy_limits", {"quota_policy_id": "q"}),
        ("ff_sweep_admissions", {}),
        ("ff_sweep_admissions", {"lane_id": "limited"}),
        ("ff_update_quota_policy", {"quota_policy_id": "full", "max_concurrent": 5}),
    ):
        plans += explained(function, **args)[1]
    assert list(wasted(plans)) == []


def test_a_plain_execution_sits_in_the_primary_key_and_one_more_index(db, connect):
    """Index entries after the life of an execution: only the primary key and retention."""
    db.execute("create extension if not exists pgstattuple")
    create(db)
    query = """
        select s.indexrelname, (pgstatindex(s.indexrelid::regclass)).leaf_pages
          from pg_stat_user_indexes s join pg_class i on i.oid = s.indexrelid join pg_am a on a.oid = i.relam
         where s.relname = 'ff_execution' and a.amname = 'btree'
    """

    def used() -> set[str]:
        db.execute("vacuum ff_execution")
        return {row["indexrelname"] for row in table(db, query) if row["leaf_pages"]}

    assert used() == {"ff_execution_pkey", "ff_execution_ready"}
    row = take(db)
    assert used() >= {"ff_execution_pkey", "ff_execution_due"}
    one(db, "ff_complete", handle=row["handle"])
    assert used() >= {"ff_execution_pkey", "ff_execution_retention"}


def fail_many(db, **args):
    for _ in rows(db, "ff_create_executions", lane_id="default", payloads=[b""] * MANY, **args):
        one(db, "ff_fail", handle=take(db)["handle"])


def test_retention_reads_what_it_deletes_and_not_what_is_kept_longer(db, clock, explained):
    clock.freeze()
    fail_many(db)
    fail_many(db, policy={"retention_ms": 100 * 86_400_000})
    clock.advance(8 * 86_400_000)
    create(db)
    one(db, "ff_complete", handle=take(db)["handle"])
    clock.advance(8 * 86_400_000)
    found, plans = explained("ff_trim_retention")
    assert found == [{"processed": 1, "errors": 0, "more": False}]
    assert list(wasted(plans)) == []
    read = sum(
        node["Actual Rows"] * node["Actual Loops"]
        for plan in plans
        for node in nodes(plan["Plan"])
        if node.get("Relation Name") == "ff_execution"
    )
    assert read < 20


def test_a_chosen_id_is_looked_up_and_not_searched_for(db, explained):
    keys = [str(n) for n in range(MANY)]
    rows(db, "ff_create_executions", lane_id="other", payloads=[b""] * MANY, idempotency_keys=keys)
    _, plans = explained(
        "ff_create_execution", lane_id="other", execution_id="{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    )
    assert list(wasted(plans)) == []


def edges_read(plans):
    """How many rows of edges and groups the statements looked at."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for plan in plans
        for node in nodes(plan["Plan"])
        if node.get("Relation Name") in ("ff_edge", "ff_edge_group") and "Scan" in node["Node Type"]
    )


def submitted(db, upstreams, downstreams, **groups):
    """A flow in which each of some members feeds each of the others."""
    made = rows(
        db,
        "ff_submit_flow",
        nodes=Jsonb(
            [{"key": f"u{n}", "lane_id": "up"} for n in range(upstreams)]
            + [{"key": f"d{n}", "lane_id": "down"} for n in range(downstreams)]
        ),
        edges=Jsonb([{"from": f"u{n}", "to": f"d{m}"} for n in range(upstreams) for m in range(downstreams)]),
        groups=Jsonb([{"to": f"d{n}", **groups} for n in range(downstreams)] if groups else []),
    )
    return made[0]["flow_id"]


def test_cancelling_a_flow_reads_in_proportion_to_its_edges(db, explained):
    read = []
    for size in (50, 200):
        flow_id = submitted(db, 1, size)
        (found,), plans = explained("ff_cancel_flow", flow_id=flow_id)
        assert found["cancelled_count"] == size + 1
        read.append(edges_read(plans))
    assert 0 < read[1] <= 5 * read[0]


def test_an_end_that_decides_many_groups_reads_in_proportion_to_their_edges(db, explained):
    read = []
    for upstreams, downstreams in ((10, 5), (20, 10)):
        flow_id = submitted(db, upstreams, downstreams, policy="any_of")
        handle = take(db, "up")["handle"]
        _, plans = explained("ff_complete", handle=handle)
        found = one(db, "ff_describe_flow", flow_id=flow_id)
        assert (found["members_cancelled"], found["members_waiting"]) == (upstreams - 1, downstreams)
        read.append(edges_read(plans))
        rows(db, "ff_cancel_flow", flow_id=flow_id)
    assert 0 < read[1] <= 5 * read[0]
