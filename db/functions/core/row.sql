-- ff__open by wire id. Errors: invalid_execution_id, execution_not_found.
create or replace function ff__lock_execution(p_execution_id text) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec := ff__open(ff__execution_uuid(p_execution_id));
begin
    if e.execution_id is null then
        perform ff__raise_not_found(p_execution_id);
    end if;
    return e;
end
$$;

-- Locks an execution (waits) and opens an operation on it: the state, the time, read after the lock, and the ord of its
-- events: not before this transaction, and not before an earlier event of the same execution. All NULL if it does not
-- exist. NO KEY UPDATE, as every lock except for deletion: the creation of a child locks its parent only against
-- deletion. State words and flags are read after the lock, since it may have waited for a change of them.
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
    e.open_resources := c.open_waitpoints > 0 or c.stream_open;
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

-- Locks executions in the order of their ids (waits), so that two batches cannot deadlock. Returns the time, read after
-- the last lock.
create or replace function ff__lock_executions(p_ids uuid[]) returns bigint
language plpgsql volatile
as $$
begin
    perform from ff_execution c where c.execution_id = any (p_ids) order by c.execution_id for no key update;
    return ff__now_ms();
end
$$;

-- Locks the streams of executions that the caller has locked, and returns the executions whose streams no other
-- transaction has locked (ff_watch_stream takes no lock on the execution): closing or deleting a locked stream would
-- wait.
create or replace function ff__try_lock_streams(p_ids uuid[]) returns uuid[]
language plpgsql volatile
as $$
declare
    v_held uuid[];
begin
    with locked as materialized (
        select m.execution_id, m.attempt_index
          from unnest(p_ids) x(id) join ff_stream_meta m on m.execution_id = x.id for update of m skip locked)
    select array_agg(m.execution_id) into v_held
      from unnest(p_ids) x(id) join ff_stream_meta m on m.execution_id = x.id
     where (m.execution_id, m.attempt_index) not in (select l.execution_id, l.attempt_index from locked l);
    if v_held is null then
        return p_ids;
    end if;
    return array(select x.id from unnest(p_ids) with ordinality x(id, n) where x.id <> all (v_held) order by x.n);
end
$$;

-- ff__open without waiting, for sweeps: a row of NULLs if the execution is locked or gone. An execution whose stream is
-- locked counts as locked (ff_watch_stream takes no lock on the execution), since ending the attempt would wait for it.
create or replace function ff__try_open(p_execution_id uuid, p_defer_ends boolean default false) returns ff_exec
language plpgsql volatile
as $$
declare
    v_none ff_exec;
    e ff_exec;
begin
    perform from ff_execution c where c.execution_id = p_execution_id for no key update skip locked;
    if not found then
        return v_none;
    end if;
    e := ff__open(p_execution_id, p_defer_ends);
    if e.open_resources then
        perform from ff_stream_meta m
          where m.execution_id = e.execution_id and m.attempt_index = e.current_attempt_index for update skip locked;
        if not found and exists (select from ff_stream_meta m where m.execution_id = e.execution_id
                                                                and m.attempt_index = e.current_attempt_index) then
            return v_none;
        end if;
    end if;
    return e;
end
$$;
