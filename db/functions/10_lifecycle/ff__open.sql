-- Locks an execution (waits for it) and opens an operation on it: what decides, the time, read after the lock, and the
-- ord of its events: never before this transaction, never before an earlier event of the same execution.
-- All NULL if there is none. NO KEY UPDATE, as every lock but that of a deletion: a child that is being created holds its
-- parent against deletion only. Words and flags are read after the lock: it may have waited for a change of them.
create or replace function ff__open(p_execution_id uuid, p_defer_ends boolean default false) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec;
    c ff_execution;
begin
    select x.* into c from ff_execution x where x.execution_id = p_execution_id for no key update;
    if not found then
        return null;
    end if;
    select w.lifecycle_phase, w.ownership_state, w.eligibility_state, w.attempt_state, w.public_state
      into e.lifecycle_phase, e.ownership_state, e.eligibility_state, e.attempt_state, e.public_state
      from ff_state_word w where w.state = c.state;
    e.execution_id := c.execution_id;
    e.partition_key := c.partition_key;
    e.flow_id := c.flow_id;
    e.namespace := c.namespace;
    e.lane_id := c.lane_id;
    e.queue_id := c.queue_id;
    e.rank := c.rank;
    e.priority := c.priority;
    e.state := c.state;
    e.current_attempt_index := c.attempt_index;
    e.total_attempt_count := c.total_attempt_count;
    e.retry_count := c.retry_count;
    e.lease_reclaim_count := c.lease_reclaim_count;
    e.lease_epoch := c.lease_epoch;
    e.attempt_timeout_at_ms := c.attempt_timeout_at_ms;
    e.attempt_remaining_ms := c.attempt_remaining_ms;
    e.deadline_at_ms := c.deadline_at_ms;
    e.delay_until_ms := c.delay_until_ms;
    e.granted := c.granted;
    e.loose_ends := c.open_waitpoints > 0 or c.stream_open;
    e.limited := c.limited;
    e.tags := coalesce(c.tags, '{}');
    if e.attempt_state in ('running_attempt', 'attempt_interrupted') then
        e.current_attempt_id := c.attempt_id;
    elsif e.lifecycle_phase = 'terminal' and c.total_attempt_count = 0 then
        e.attempt_state := 'none';
    end if;
    if e.lifecycle_phase = 'active' then
        e.lease_id := c.lease_id;
        e.lease_expires_at_ms := c.lease_expires_at_ms;
        e.worker_id := c.worker_id;
        e.worker_instance_id := c.worker_instance_id;
    end if;
    e.ord := greatest(pg_current_xact_id()::text::bigint, c.last_event_ord);
    e.now_ms := ff__now_ms();
    e.defer_ends := p_defer_ends;
    return e;
end
$$;
