"""ff_check_invariants finds each kind of damage to executions, attempts, grants and their events."""

import pytest

from tests.sql import create, one, spread_events, table, take, violations

EXECUTION = "update ff_exec_core set"
ATTEMPT = "update ff_attempt set"
EVENT = (
    "from ff_event_log where execution_id = (select execution_id from ff_exec_core where lane_id = 'ended')"
)
DAMAGES = {
    "legal_vector": f"{EXECUTION} ownership_state = 'leased' where lane_id = 'ready'",
    "public_state": "alter table ff_exec_core alter column public_state drop expression;"
    f"{EXECUTION} public_state = 'active' where lane_id = 'ready'",
    "lease_columns": f"{EXECUTION} worker_id = 'w' where lane_id = 'ready'",
    "terminal_columns": f"{EXECUTION} terminal_at_ms = null where lane_id = 'ended'",
    "delay_columns": f"{EXECUTION} delay_until_ms = null where lane_id = 'later'",
    "lease_bounds": f"{EXECUTION} lease_check_at_ms = lease_expires_at_ms + 1 where lane_id = 'running'",
    "last_time": f"{EXECUTION} deadline_at_ms = 253402300800000 where lane_id = 'ready'",
    "priority": f"{EXECUTION} priority = -1 where lane_id = 'ready'",
    "attempt_id": f"{EXECUTION} current_attempt_id = gen_random_uuid() where lane_id = 'ready'",
    "partition": f"{EXECUTION} partition_key = (partition_key + 1) %% 256 where lane_id = 'ready'",
    "lane_registered": "delete from ff_lane_registry where lane_id = 'ready'",
    "input_row": "delete from ff_exec_input i using ff_exec_core c "
    "where c.execution_id = i.execution_id and c.lane_id = 'ready'",
    "policy_limits": f"{EXECUTION} replay_count = 11 where lane_id = 'ready'",
    "capabilities": f"{EXECUTION} caps_key = 'gpu' where lane_id = 'ready'",
    "capabilities of a set": "update ff_exec_input set required_capabilities = '{b,a}';"
    f"{EXECUTION} caps_key = 'b,a'",
    "grants": f"{EXECUTION} lifecycle_phase = 'terminal', terminal_outcome = 'cancelled', terminal_at_ms = 1, "
    "eligibility_state = 'not_applicable', blocking_reason = 'none' where lane_id = 'granted'",
    "mirrors": f"{EXECUTION} reserved_until_ms = null where lane_id = 'granted'",
    "mirrors of tags": f"{EXECUTION} tagged = not tagged where lane_id = 'ready'",
    "open_attempt": f"{ATTEMPT} ended_at_ms = null, outcome = null, state = 'started' where state like 'ended%%'",
    "attempt_type": f"{ATTEMPT} attempt_type = 'retry'",
    "attempt_words": f"{ATTEMPT} outcome = 'failure' where state = 'ended_success'",
    "lease_epoch": f"{ATTEMPT} lease_epoch = 99",
    "attempt_count": f"{EXECUTION} total_attempt_count = 2 where lane_id = 'ended'",
    "attempt_count of one that is gone": "delete from ff_attempt",
    "current_lease": f"{ATTEMPT} lease_id = gen_random_uuid() where state = 'started'",
    "current_attempt": f"{ATTEMPT} state = 'suspended' where state = 'started'",
    "started_at": f"{EXECUTION} started_at_ms = 1 where lane_id = 'ended'",
    "completion_events": f"delete {EVENT} and family = 'completion'",
    "lease_start_events": f"delete {EVENT} and event_type = 'acquired'",
    "lease_end_events": f"delete {EVENT} and event_type = 'released'",
    "orphan": "insert into ff_attempt select (jsonb_populate_record(a, "
    "jsonb_build_object('execution_id', gen_random_uuid()))).* from ff_attempt a limit 1",
    "idempotency_key": "update ff_idempotency set request_hash = '\\x00'",
    "event_order": f"update ff_event_log set ord = ord - 1000000 where event_id = (select max(event_id) {EVENT})",
    "event_last_ord": f"{EXECUTION} last_event_ord = 0 where lane_id = 'ended'",
    "event_namespace": "update ff_event_log set namespace = 'elsewhere'",
    "event_words": "update ff_event_log set event_type = 'unheard of' where family = 'lease'",
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_is_found(db, clock, what):
    clock.freeze()
    create(db, "ready")
    create(db, "later", delay_ms=1000)
    create(db, "running")
    take(db, "running")
    create(db, "ended", idempotency_key="key")
    one(db, "ff_complete", handle=take(db, "ended")["handle"])
    granted = create(db, "granted")
    one(db, "ff_issue_claim_grant", execution_id=granted, worker_id="w", worker_instance_id="w-1")
    spread_events(db)
    assert violations(db) == []
    for check in table(
        db,
        "select conrelid::regclass::text as relation, quote_ident(conname) as name from pg_constraint "
        "where contype = 'c' "
        "and conrelid in ('ff_exec_core'::regclass, 'ff_attempt'::regclass, 'ff_event_log'::regclass)",
    ):
        db.execute(f"alter table {check['relation']} drop constraint {check['name']}")
    for statement in DAMAGES[what].replace("%%", "%").split(";"):
        db.execute(statement)
    assert what.split(" of ")[0] in {row["invariant"] for row in violations(db)}
