-- Locks a flow (waits for it) for an operation on its graph. NULL if there is none. The operation opens members with
-- p_defer_ends: what it ends is only noted, and ff__close_flow dispatches it, once.
create or replace function ff__open_flow(p_flow_id uuid) returns ff_flow_core
language sql volatile
as $$
    select x.* from ff_flow_core x where x.flow_id = p_flow_id for update
$$;

-- ff__open_flow for an id that must exist. Errors: invalid_input (NULL), flow_not_found.
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

-- The end of an operation on a flow's graph: dispatches what is noted, its own ends and those of transactions that found the
-- flow locked, and ends the flow if no member lives. The lock stays until the transaction ends.
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

-- The last member of a flow has ended and nothing waits for dispatch. An open flow ends: failed if ff__flow_failed says so,
-- else completed. What retention goes by is stored, of a cancelled flow too (see the columns unsuccessful and retention_ms).
-- The caller holds the flow.
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

-- Whether a member of a flow ended failed, cancelled or expired without being tolerated: tolerated is one all of whose
-- outgoing edges, at least one, lead to satisfied groups (lost races, stragglers of a quorum, expected failures).
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

-- Whether members of a flow may be claimed: it is not being built, and not cancelled together with its members.
create or replace function ff__flow_claimable(p_flow_id uuid) returns boolean
language plpgsql stable
as $$
begin
    return coalesce((select f.claimable from ff_flow_core f where f.flow_id = p_flow_id), true);
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

-- A worker's verb that would make a member wait: its flow must not be cancelled together with its members. Errors:
-- flow_cancelled.
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

-- Refuses a change of the graph of a flow that is over. Errors: flow_already_terminal.
create or replace function ff__flow_over(f ff_flow_core) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('flow_already_terminal', format('flow %s is %s', f.flow_id, f.public_flow_state),
                      jsonb_build_object('flow_id', f.flow_id, 'public_flow_state', f.public_flow_state));
end
$$;

-- What a flow says about itself. Errors: invalid_input, invalid_tag_key.
create or replace function ff__check_flow(p_flow_kind text, p_namespace text, p_tags jsonb) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text('p_flow_kind', p_flow_kind, 1, 128);
    perform ff__check_text('p_namespace', p_namespace, 1, 64);
    perform ff__check_tags('p_tags', p_tags);
end
$$;

-- Raises flow_conflict: the id belongs to another flow.
create or replace function ff__flow_conflict(p_flow_id uuid) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('flow_conflict', 'the flow id is taken',
                      (select jsonb_build_object('flow_id', f.flow_id, 'flow_kind', f.flow_kind, 'namespace', f.namespace)
                         from ff_flow_core f where f.flow_id = p_flow_id));
end
$$;

-- Writes a new flow and its event; NULL if the id is taken. Waits for a concurrent writer of the same id.
create or replace function ff__insert_flow(
    p_flow_id uuid, p_flow_kind text, p_namespace text, p_state text, p_tags jsonb
) returns ff_flow_core
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    f ff_flow_core;
begin
    insert into ff_flow_core (
        flow_id, partition_key, flow_kind, namespace, public_flow_state, tags, created_at_ms, last_mutation_at_ms)
    values (p_flow_id, ff__partition(p_flow_id), p_flow_kind, p_namespace, p_state, p_tags, v_now, v_now)
    on conflict do nothing
    returning * into f;
    if f.flow_id is not null then
        perform ff__emit_flow(p_flow_id, 'created', v_now);
    end if;
    return f;
end
$$;

-- New members joined a flow that the caller holds: its counts, and if it had ended it is open again.
create or replace function ff__grow_flow(p_flow_id uuid, p_members int, p_now_ms bigint) returns ff_flow_core
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

-- A completed or failed flow is open again: something in it lives.
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

-- An event of a flow that the caller holds: family flow, or p_family, with the flow's namespace and tags. Writes the
-- flow's row: its place in the event order.
create or replace function ff__emit_flow(
    p_flow_id uuid, p_event_type text, p_now_ms bigint, p_reason text default null, p_details jsonb default null,
    p_family text default 'flow'
) returns void
language plpgsql volatile
as $$
declare
    v_gen int := ff__event_gate(p_family, p_event_type);
    v_namespace text;
    v_tags jsonb;
    v_ord bigint;
begin
    if v_gen is null then
        return;
    end if;
    update ff_flow_core x
       set last_event_ord = greatest(pg_current_xact_id()::text::bigint, x.last_event_ord), last_mutation_at_ms = p_now_ms
     where x.flow_id = p_flow_id
    returning x.namespace, x.tags, x.last_event_ord into v_namespace, v_tags, v_ord;
    if found then
        perform ff__emit_other(v_gen, p_family, p_event_type, p_now_ms, v_ord, p_reason, p_details, v_namespace, v_tags,
                               p_flow_id);
    end if;
end
$$;

-- An execution that is to be a member of a flow lies in the flow's partition. Pure arithmetic. Errors:
-- partition_mismatch.
create or replace function ff__check_partition(p_flow_id uuid, p_execution_id uuid) returns void
language plpgsql stable
as $$
begin
    if ff__partition(p_flow_id) <> ff__partition(p_execution_id) then
        perform ff__raise('partition_mismatch',
                          format('the flow lies in partition %s, the execution in %s', ff__partition(p_flow_id),
                                 ff__partition(p_execution_id)),
                          jsonb_build_object('flow_id', p_flow_id, 'flow_partition', ff__partition(p_flow_id),
                                             'execution_id',
                                             ff__wire_id(ff__partition(p_execution_id), p_execution_id)));
    end if;
end
$$;

-- A flow that was being built is not any more: its members enter their queues, unless a grant reserves them. The caller has
-- locked them. All that live are written: an operation with an older snapshot, which cannot see that the flow has started,
-- then fails to serialize instead of leaving its member out of the queue.
create or replace function ff__release_members(p_flow_id uuid, p_now_ms bigint) returns void
language plpgsql volatile
as $$
begin
    update ff_execution c
       set ready_in = case when not c.granted and c.state in ('ready', 'ready_retry', 'ready_replay', 'ready_resume',
                                                              'lease_expired', 'lease_revoked') then c.queue_id end,
           last_mutation_at_ms = p_now_ms
     where c.flow_id = p_flow_id and c.terminal_at_ms is null;
    perform ff__wake_members(p_flow_id);
end
$$;

-- Notifies the lanes on which a flow has work that a claim may take.
create or replace function ff__wake_members(p_flow_id uuid) returns void
language plpgsql volatile
as $$
declare
    v_lane text;
begin
    for v_lane in
        select distinct c.lane_id from ff_execution c
         where c.flow_id = p_flow_id and c.ready_in is not null order by c.lane_id
    loop
        perform ff__wake_lane(v_lane);
    end loop;
end
$$;
