"""Members of a cancelled flow that end as a set: what is stored is what ending them one by one stores."""

import pytest
from psycopg.types.json import Jsonb

from tests.flows.graph import begin, flow, link, node, policy
from tests.sql import one, rows, table, violations
from tests.suspensions.support import APPROVAL, seed

# What differs from one execution to the next whatever happens to it.
OWN = {
    "rank",
    "queue_id",
    "execution_id",
    "flow_id",
    "partition_key",
    "attempt_id",
    "current_attempt_id",
    "lease_id",
    "event_id",
    "edge_id",
    "suspension_id",
    "waitpoint_id",
    "current_suspension_id",
    "current_waitpoint_id",
    "upstream_eid",
    "downstream_eid",
}


def members(db, clock, fid, edges):
    """A member in every state that has not ended, and one that has; ids by name."""
    found = {
        "waiting": node(db, fid),
        "tagged": node(db, fid, tags={"a.b": "c"}),
        "delayed": node(db, fid, delay_ms=10**6),
        "done": node(db, fid),
        "granted": node(db, fid),
        "limited": node(db, fid, policy={"quota_policy_id": "q"}),
        "reserved": node(db, fid, policy={"quota_policy_id": "q"}),
    }
    one(db, "ff_complete", handle=begin(db, found["done"])["handle"])
    one(
        db,
        "ff_issue_claim_grant",
        execution_id=found["granted"],
        worker_id="w",
        worker_instance_id="w-1",
        capabilities=[],
        grant_ttl_ms=10**6,
    )
    one(db, "ff_check_admission", quota_policy_id="q", execution_id=found["reserved"])

    def held(name, ttl=10**6, **args):
        found[name] = node(db, fid, **args)
        return begin(db, found[name], lease_ttl_ms=ttl)["handle"]

    held("running", tags={"a.b": "d"})
    held("runs within limits", policy={"quota_policy_id": "q"})
    held("lapsed", 10)
    held("timed out", policy={"timeout_policy": {"attempt_timeout_ms": 10}})
    held("marked expired", 10)
    held("revoked")
    one(db, "ff_revoke_lease", execution_id=found["revoked"])
    one(db, "ff_append_frame", handle=held("streaming"), payload=b"x")
    one(db, "ff_delay", handle=held("paused"), delay_ms=10**6)
    rows(db, "ff_suspend", handle=held("suspended"), condition=Jsonb(APPROVAL))
    retry = {"retry_policy": {"max_retries": 3, "backoff": {"type": "fixed", "delay_ms": 10**6}}}
    one(db, "ff_fail", handle=held("to be retried", policy=retry), reason="bad")
    clock.advance(10)
    one(db, "ff_mark_lease_expired_if_due", execution_id=found["marked expired"])
    if edges:
        for name in ("child", "racer", "grandchild"):
            found[name] = node(db, fid)
        policy(db, fid, found["racer"], "any_of")
        for upstream, downstream in [
            ("waiting", "child"),
            ("running", "child"),
            ("delayed", "racer"),
            ("running", "racer"),
            ("child", "grandchild"),
        ]:
            link(db, fid, found[upstream], found[downstream])
    return found


def stored(db, fid, found):
    """What is stored of a flow and its members, by their names; equal rows get equal numbers for what is their own."""
    names = {eid.rsplit(":", maxsplit=1)[-1]: name for name, eid in found.items()}

    def named(row):
        own: dict[str, object] = {
            "who": names.get(str(row.get("execution_id"))),
            "from": names.get(str(row.get("upstream_eid"))),
            "to": names.get(str(row.get("downstream_eid"))),
        }
        if "release_lease_id" in row:
            own["release_lease_id"] = row["release_lease_id"] and row["release_lease_id"] == row["lease_id"]
            own["release_detail"] = row["release_detail"] and row["release_detail"].keys()  # it names ids
        if "lease_id" in row:
            own["has a lease"] = row["lease_id"] is not None
        if "unadmitted_lease_id" in row:
            own["unadmitted_lease_id"] = row["unadmitted_lease_id"] is not None
        return own | {k: v for k, v in row.items() if k not in own.keys() | OWN}

    def sorted_rows(query):
        return sorted((named(row) for row in table(db, query, fid)), key=repr)

    of_members = "execution_id in (select execution_id from ff_exec_core where flow_id = %s)"
    happened = table(db, "select * from ff_event where flow_id = %s order by event_id", fid)
    return {
        "executions": sorted_rows("select * from ff_exec_core where flow_id = %s"),
        "attempts": sorted_rows(f"select * from ff_attempt where {of_members}"),
        "events": {
            name: [named(e) for e in happened if str(e["execution_id"]) == eid] for eid, name in names.items()
        },
        "flow events": [named(e) for e in happened if e["execution_id"] is None],
        "flow": sorted_rows("select * from ff_flow_core where flow_id = %s"),
        "edges": sorted_rows("select * from ff_edge where flow_id = %s"),
        "groups": sorted_rows("select * from ff_edge_group where flow_id = %s"),
        "backlog": sorted_rows("select * from ff_cancel_backlog where flow_id = %s"),
        "owed": sorted_rows("select * from ff_cancel_backlog_member where flow_id = %s"),
        "to dispatch": sorted_rows("select * from ff_flow_dispatch where flow_id = %s"),
        "grants": sorted_rows(f"select execution_id from ff_claim_grant where {of_members}"),
        "reserved": sorted_rows(f"select execution_id from ff_quota_reservation where {of_members}"),
        "waits": sorted_rows(f"select state, close_reason from ff_waitpoint where {of_members}"),
        "streams": sorted_rows(f"select closed_reason from ff_stream_meta where {of_members}"),
    }


@pytest.mark.parametrize("muted", [False, True])
@pytest.mark.parametrize("strength", ["cancel_all", "cancel_pending"])
@pytest.mark.parametrize("edges", [False, True])
def test_members_that_end_as_a_set_leave_what_they_leave_one_by_one(db, clock, edges, strength, muted):
    clock.freeze()
    began = clock.now()
    seed(db)
    one(db, "ff_create_quota_policy", quota_policy_id="q", max_concurrent=5)
    if muted:
        one(db, "ff_set_event_family", family="completion", muted=["cancelled"])
        one(db, "ff_set_event_family", family="lease", muted=["released"])
    found = []
    for together in (True, False):
        with db.transaction(force_rollback=True):
            clock.set(began)
            fid = flow(db)
            eids = members(db, clock, fid, edges)
            assert violations(db) == []
            if together:
                answer = one(
                    db, "ff_cancel_flow", flow_id=fid, policy=strength, reason="r", cancelled_by="me"
                )
                assert answer["outcome"] == "cancelled"
                assert answer["cancelled_count"] + answer["running_count"] == len(eids) - 1
            else:
                one(
                    db,
                    "ff_cancel_flow",
                    flow_id=fid,
                    policy=strength,
                    reason="r",
                    cancelled_by="me",
                    max_members=0,
                )
                one(db, "ff__open_flow", flow_id=fid)
                for eid in sorted(eids.values()):
                    db.execute(
                        "select ff__cancel(ff__open(c.execution_id, true), 'override', f.cancel_reason, f.cancelled_by)"
                        " from ff_execution c join ff_flow_core f on f.flow_id = c.flow_id"
                        " where c.execution_id = %s and c.terminal_at_ms is null"
                        " and ff__is_cancel_covered(f.cancellation_policy, c.state, c.lease_expires_at_ms,"
                        " ff_now_ms())",
                        [eid.rsplit(":", maxsplit=1)[-1]],
                    )
                one(db, "ff__close_flow", flow_id=fid)
            assert violations(db) == []
            found.append(stored(db, fid, eids))
    for what, there in found[0].items():
        assert there == found[1][what], what
    assert found[0]["to dispatch"] == []
    live = [row["who"] for row in found[0]["executions"] if row["lifecycle_phase"] != "terminal"]
    held = ["running", "runs within limits", "streaming"]
    assert sorted(live) == ([] if strength == "cancel_all" else held)
    assert [row["who"] for row in found[0]["owed"]] == sorted(live)
