-- Whether the cancellation of a flow covers a member that has not ended: cancel_all covers every member, cancel_pending
-- all but those under a live lease.
create or replace function ff__is_cancel_covered(
    p_policy text, p_state ff_state, p_lease_expires_at_ms bigint, p_now_ms bigint
) returns boolean
language sql immutable parallel safe
as $$
    select p_policy = 'cancel_all'
        or p_policy = 'cancel_pending' and not (p_state = 'leased' and p_lease_expires_at_ms > p_now_ms)
$$;

-- Locks a flow (waits) for an operation on its graph. NULL if it does not exist. The operation opens members with
-- p_defer_ends: their ends are only recorded, and ff__close_flow dispatches them once.
create or replace function ff__open_flow(p_flow_id uuid) returns ff_flow_core
language sql volatile
as $$
    select x.* from ff_flow_core x where x.flow_id = p_flow_id for update
$$;

-- ff__open_flow for a flow that must exist. Errors: invalid_input (NULL), flow_not_found.
create or replace function ff__lock_flow(p_flow_id uuid) returns ff_flow_core
language plpgsql volatile
as $$
declare
    f ff_flow_core;
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    end if;
    f := ff__open_flow(p_flow_id);
    if f.flow_id is null then
        perform ff__raise('flow_not_found', 'no such flow', jsonb_build_object('flow_id', p_flow_id));
    end if;
    return f;
end
$$;

-- ff__open_flow without waiting: false if the flow is locked or gone.
create or replace function ff__try_flow(p_flow_id uuid) returns boolean
language plpgsql volatile
as $$
begin
    perform from ff_flow_core f where f.flow_id = p_flow_id for update skip locked;
    return found;
end
$$;

-- Ends an operation on a flow's graph: dispatches the recorded ends, its own and those of transactions that found the
-- flow locked, and ends the flow if no live member is left. The lock is held until the transaction ends.
create or replace function ff__close_flow(p_flow_id uuid, p_max_edges int default 1000) returns void
language plpgsql volatile
as $$
begin
    if exists (select from ff_flow_dispatch q where q.flow_id = p_flow_id) then
        perform ff__dispatch_flow(p_flow_id, p_max_edges);
    else
        perform ff__end_flow(p_flow_id);
    end if;
end
$$;

-- Ends an open flow whose last member has ended and that has nothing left to dispatch: failed if ff__flow_failed,
-- otherwise completed. Stores the data for retention, also for a cancelled flow (see the columns unsuccessful and
-- retention_ms). The caller holds the flow lock.
create or replace function ff__end_flow(p_flow_id uuid) returns void
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    v_state text;
    v_failed boolean;
    v_unsuccessful boolean;
    v_retention bigint;
begin
    select f.public_flow_state into v_state from ff_flow_core f
     where f.flow_id = p_flow_id and f.public_flow_state in ('open', 'cancelled') and f.node_count > 0
       and f.live_members = 0 and not exists (select from ff_flow_dispatch q where q.flow_id = p_flow_id);
    if not found then
        return;
    end if;
    select bool_or(c.state in ('failed', 'cancelled', 'expired')),
           bool_or(c.state in ('failed', 'cancelled', 'expired') and c.retention_ms is null),
           case when count(*) = count(c.retention_ms) then max(c.retention_ms) else -1 end
      into v_failed, v_unsuccessful, v_retention
      from ff_execution c where c.flow_id = p_flow_id;
    if v_state = 'cancelled' then
        update ff_flow_core f set unsuccessful = v_unsuccessful, retention_ms = v_retention
         where f.flow_id = p_flow_id
           and (f.unsuccessful, f.retention_ms) <> (v_unsuccessful, v_retention);
        return;
    end if;
    v_state := case when v_failed and ff__flow_failed(p_flow_id) then 'failed' else 'completed' end;
    update ff_flow_core f
       set public_flow_state = v_state, terminal_at_ms = v_now, unsuccessful = v_unsuccessful,
           retention_ms = v_retention
     where f.flow_id = p_flow_id;
    perform ff__emit_flow(p_flow_id, v_state, v_now);
end
$$;

-- Whether a member of a flow ended failed, cancelled or expired without being tolerated: a member is tolerated if it
-- has outgoing edges and all of them lead to satisfied groups (lost races, stragglers of a quorum, expected failures).
create or replace function ff__flow_failed(p_flow_id uuid) returns boolean
language plpgsql stable
as $$
begin
    return exists (
        select from ff_execution c
         where c.flow_id = p_flow_id and c.state in ('failed', 'cancelled', 'expired')
           and (not exists (select from ff_edge d where d.upstream_eid = c.execution_id)
                or exists (select from ff_edge d
                             left join ff_edge_group g
                               on g.flow_id = d.flow_id and g.downstream_eid = d.downstream_eid
                            where d.upstream_eid = c.execution_id
                              and g.group_state is distinct from 'satisfied')));
end
$$;

-- Whether a flow is still being built: its members are in no queue. Plain SQL, so that it is inlined.
create or replace function ff__flow_building(p_flow_id uuid) returns boolean
language sql stable
as $$
    select exists (select from ff_flow_core f where f.flow_id = p_flow_id and f.public_flow_state = 'building')
$$;

-- Whether a flow was cancelled together with its members: they may complete, but not wait or be retried.
create or replace function ff__flow_cancelled(p_flow_id uuid) returns boolean
language plpgsql volatile
as $$
begin
    return exists (select from ff_flow_core f
                    where f.flow_id = p_flow_id and f.public_flow_state = 'cancelled' and not f.claimable);
end
$$;

-- Checks, for a worker's verb that would make a member wait, that its flow was not cancelled together with its members.
-- Errors: flow_cancelled.
create or replace function ff__check_flow_open(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    if ff__flow_cancelled(e.flow_id) then
        perform ff__raise('flow_cancelled', format('flow %s was cancelled', e.flow_id),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'flow_id', e.flow_id));
    end if;
end
$$;

-- Counts new members of a flow that the caller has locked, and reopens the flow if it had ended.
create or replace function ff__count_new_members(p_flow_id uuid, p_members int, p_now_ms bigint) returns ff_flow_core
language plpgsql volatile
as $$
declare
    f ff_flow_core;
begin
    update ff_flow_core x
       set node_count = x.node_count + p_members, live_members = x.live_members + p_members,
           graph_revision = x.graph_revision + p_members, last_mutation_at_ms = p_now_ms
     where x.flow_id = p_flow_id
    returning x.* into f;
    perform ff__reopen_flow(f, p_now_ms);
    return f;
end
$$;

-- Reopens a completed or failed flow that has a live member again.
create or replace function ff__reopen_flow(f ff_flow_core, p_now_ms bigint) returns void
language plpgsql volatile
as $$
begin
    if f.public_flow_state in ('completed', 'failed') then
        update ff_flow_core x set public_flow_state = 'open', terminal_at_ms = null, projected = false
         where x.flow_id = f.flow_id;
        perform ff__emit_flow(f.flow_id, 'reopened', p_now_ms, null,
                              jsonb_build_object('previous_state', f.public_flow_state));
    end if;
end
$$;
