"""ff_check_invariants finds each kind of damage to executions, attempts, grants and their events."""

import pytest

from tests.sql import create, one, spread_events, take, violations

EXECUTION = "update ff_execution set"
EVENT = (
    "from ff_event_log where execution_id = (select execution_id from ff_execution where lane_id = 'ended')"
)
PAST = (
    "insert into ff_attempt_past (execution_id, attempt_index, attempt_id, lease_id, lease_epoch, started_at_ms,"
    " ended_at_ms, attempt_type, worker_id, worker_instance_id, outcome)"
    " select {id}, {index}, gen_random_uuid(), gen_random_uuid(), {epoch}, started_at_ms, started_at_ms, 'initial',"
    " 'w', 'w-1', 'failure' from ff_execution where lane_id = '{lane}'"
)
DAMAGES = {
    "legal_vector": "update ff_state_word set ownership_state = 'leased' where state = 'ready'",
    "legal_vector of a wrong word": "update ff_state_word set attempt_state = 'none' where state = 'completed'",
    "public_state": "update ff_state_word set public_state = 'active' where state = 'ready'",
    "state_word": "delete from ff_state_word where state = 'ready'",
    "queue_row": f"{EXECUTION} queue_id = 0, ready_in = 0 where lane_id = 'ready'",
    "queue_row of another lane": f"{EXECUTION} lane_id = 'other' where lane_id = 'ready'",
    "queue_row of work under limits": f"{EXECUTION} limited = true where lane_id = 'ready'",
    "ready_in": f"{EXECUTION} ready_in = null where lane_id = 'ready'",
    "ready_in of another queue": f"{EXECUTION} ready_in = queue_id + 1 where lane_id = 'ready'",
    "ready_in of work that is leased": f"{EXECUTION} ready_in = queue_id where lane_id = 'running'",
    "ready_in of work that is granted": f"{EXECUTION} ready_in = queue_id where lane_id = 'granted'",
    "due_at": f"{EXECUTION} due_at_ms = null where lane_id = 'later'",
    "due_at of work that is ready": f"{EXECUTION} due_at_ms = 1 where lane_id = 'ready'",
    "due_at of work that is granted": f"{EXECUTION} due_at_ms = null where lane_id = 'granted'",
    "due_at of work that is parked": f"{EXECUTION} state = 'quota', ready_in = null where lane_id = 'ready'",
    "due_at of work that has ended": f"{EXECUTION} due_at_ms = 1 where lane_id = 'ended'",
    "lease_columns": f"{EXECUTION} worker_id = null where lane_id = 'running'",
    "terminal_columns": f"{EXECUTION} terminal_at_ms = null where lane_id = 'ended'",
    "delay_columns": f"{EXECUTION} delay_until_ms = null where lane_id = 'later'",
    "lease_bounds": f"{EXECUTION} due_at_ms = lease_expires_at_ms + 1 where lane_id = 'running'",
    "lease_bounds of no check": f"{EXECUTION} due_at_ms = null where lane_id = 'running'",
    "last_time": f"{EXECUTION} deadline_at_ms = 253402300800000 where lane_id = 'ready'",
    "priority": f"{EXECUTION} priority = -1 where lane_id = 'ready'",
    "rank": f"{EXECUTION} priority = 7 where lane_id = 'ready'",
    "attempt_id": f"{EXECUTION} attempt_id = null where lane_id = 'running'",
    "attempt_columns": f"{EXECUTION} attempt_started_at_ms = null where lane_id = 'ended'",
    "attempt_columns of a first attempt": f"{EXECUTION} state = 'ready', ready_in = queue_id where lane_id = 'running'",
    "attempt_columns of an attempt that is over": f"{EXECUTION} attempt_outcome = 'success' where lane_id = 'running'",
    "release_columns": f"{EXECUTION} release_at_ms = null where lane_id = 'ended'",
    "release_columns of a later lease": f"{EXECUTION} release_lease_id = lease_id, release_lease_epoch = 2"
    " where lane_id = 'ended'",
    "release_columns of a pause": f"{EXECUTION} state = 'suspended_signal', due_at_ms = null where lane_id = 'running'",
    "partition": f"{EXECUTION} partition_key = (partition_key + 1) %% 256 where lane_id = 'ready'",
    "lane_registered": "delete from ff_lane_registry where lane_id = 'ready'",
    "policy_limits": f"{EXECUTION} replay_count = 11 where lane_id = 'ready'",
    "capabilities": "update ff_queue set caps_key = 'gpu' where lane_id = 'ready'",
    "capabilities of a set": "update ff_queue set required_capabilities = '{b,a}', caps_key = 'b,a'",
    "grants": f"{EXECUTION} state = 'cancelled', terminal_at_ms = 1 where lane_id = 'granted'",
    "mirrors": f"{EXECUTION} granted = false where lane_id = 'granted'",
    "mirrors of a grant": "delete from ff_claim_grant",
    "mirrors of tags": f"{EXECUTION} tags = '{{}}' where lane_id = 'ready'",
    "mirrors of the policy": f"{EXECUTION} retention_ms = 1 where lane_id = 'ready'",
    "open_attempt": f"{EXECUTION} attempt_outcome = null, attempt_ended_at_ms = null where lane_id = 'ended'",
    "attempt_type": f"{EXECUTION} attempt_type = 'retry' where lane_id = 'ended'",
    "attempt_words": f"{EXECUTION} attempt_outcome = 'unheard of' where lane_id = 'ended'",
    "attempt_words of a past attempt": PAST.format(id="execution_id", index=1, epoch=0, lane="ended")
    + ";update ff_attempt_past set outcome = 'failure', attempt_type = 'unheard of'",
    "lease_epoch": PAST.format(id="execution_id", index=1, epoch=99, lane="ended"),
    "attempt_count": f"{EXECUTION} total_attempt_count = 2 where lane_id = 'ended'",
    "attempt_count of one that is gone": f"{EXECUTION} attempt_index = null where lane_id = 'ended'",
    "current_lease": PAST.format(id="execution_id", index=0, epoch=0, lane="running"),
    "current_attempt": PAST.format(id="execution_id", index=0, epoch=0, lane="running"),
    "started_at": f"{EXECUTION} started_at_ms = 1 where lane_id = 'ended'",
    "completion_events": f"delete {EVENT} and family = 'completion'",
    "lease_start_events": f"delete {EVENT} and event_type = 'acquired'",
    "lease_end_events": f"delete {EVENT} and event_type = 'released'",
    "orphan": PAST.format(id="gen_random_uuid()", index=0, epoch=1, lane="ended"),
    "idempotency_key": "update ff_idempotency set request_hash = '\\x00'",
    "idempotency_key of another payload": f"{EXECUTION} payload = 'other' where lane_id = 'ended'",
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
    for statement in DAMAGES[what].replace("%%", "%").split(";"):
        db.execute(statement)
    assert what.split(" of ")[0] in {row["invariant"] for row in violations(db)}
