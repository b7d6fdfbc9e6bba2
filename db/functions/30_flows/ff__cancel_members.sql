-- ff__cancel_member for many members that the caller has locked, together with the flow; how many it ended. Those that
-- nothing hangs off (no grant, waitpoint, stream, quota or budget) end as sets: ff__end_attempt, ff__terminate and
-- ff__emit repeated for many. In a flow without edges nobody waits for their ends: they are counted here, and not noted for
-- dispatch.
create or replace function ff__cancel_members(f ff_flow_core, p_ids uuid[]) returns int
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    v_xid bigint := pg_current_xact_id()::text::bigint;
    v_bare boolean := f.edge_count = 0 and not exists (select from ff_edge_group g where g.flow_id = f.flow_id);
    v_plain uuid[];
    v_attempted uuid[];
    v_others uuid[];
    v_said uuid[] := '{}'::uuid[];
    v_event_ids bigint[] := '{}'::bigint[];
    g record;
    v_count int;
    v_id uuid;
begin
    select coalesce(array_agg(x.id order by x.id) filter (where x.plain), '{}'),
           array_agg(x.id order by x.id) filter (where x.plain and x.attempted),
           coalesce(array_agg(x.id order by x.id) filter (where not x.plain), '{}')
      into v_plain, v_attempted, v_others
      from (select c.execution_id as id, c.current_attempt_id is not null as attempted,
                   c.reserved_until_ms is null and not c.limited and c.open_waitpoints = 0 and not c.stream_open as plain
              from unnest(p_ids) u(id) join ff_exec_core c on c.execution_id = u.id
             where case when c.lifecycle_phase <> 'terminal'
                        then ff__covered(f.cancellation_policy, c.ownership_state, c.lease_expires_at_ms, v_now) end) x;
    -- Before the rows change: they still say which lease ends.
    for g in
        select v.lease_type,
               case when v.lease_type = 'released' then 'cancel'
                    when v.lease_type is null then null
                    when c.deadline_at_ms <= v_now then 'execution_deadline'
                    when c.attempt_timeout_at_ms <= v_now then 'attempt_timeout' else 'ttl' end as lease_reason,
               case when v.lease_type is not null then c.worker_id end as worker_id,
               case when v.lease_type is not null then c.worker_instance_id end as worker_instance_id,
               greatest(v_xid, c.last_event_ord) as ord,
               array_agg(c.execution_id order by c.execution_id) as ids,
               array_agg(c.current_attempt_index order by c.execution_id) as attempt_indexes,
               array_agg(c.flow_id order by c.execution_id) as flow_ids,
               array_agg(c.lane_id order by c.execution_id) as lane_ids,
               array_agg(c.namespace order by c.execution_id) as namespaces,
               array_agg(case when c.tagged then (select i.tags from ff_exec_input i
                                                   where i.execution_id = c.execution_id) end
                         order by c.execution_id) as tag_sets,
               array_agg(c.lease_id order by c.execution_id) as lease_ids,
               array_agg(c.lease_epoch order by c.execution_id) as lease_epochs
          from unnest(v_plain) u(id) join ff_exec_core c on c.execution_id = u.id
         cross join lateral (select case when c.ownership_state <> 'leased' then null
                                         when c.lease_expires_at_ms > v_now then 'released' else 'expired' end) v(lease_type)
         group by 1, 2, 3, 4, 5
    loop
        v_said := v_said || g.ids;
        v_event_ids := v_event_ids || ff__emit_many(
            'completion', 'cancelled', f.cancel_reason, v_now, g.ord, g.ids, g.attempt_indexes, g.flow_ids, g.lane_ids,
            g.namespaces, g.tag_sets, case when g.lease_type is not null then g.lease_ids end,
            case when g.lease_type is not null then g.lease_epochs end, g.worker_id, g.worker_instance_id, g.lease_type,
            g.lease_reason, not v_bare);
    end loop;
    if v_attempted is not null then
        update ff_attempt a set
            state = 'ended_cancelled', outcome = 'cancelled', ended_at_ms = v_now, failure_reason = f.cancel_reason,
            failure_category = 'cancelled', classification = 'cancelled',
            -- Paused: the record of the pause stays, its holder may still replay it.
            result = case when c.lease_id is null then a.result end,
            result_encoding = case when c.lease_id is null then a.result_encoding end,
            release_op = case when c.lease_id is null then a.release_op else 'override' end,
            release_lease_id = coalesce(c.lease_id, a.release_lease_id),
            release_lease_epoch = case when c.lease_id is null then a.release_lease_epoch else c.lease_epoch end,
            release_at_ms = case when c.lease_id is null then a.release_at_ms else v_now end,
            release_detail = case when c.lease_id is null then a.release_detail end
          from unnest(v_attempted) u(id) join ff_exec_core c on c.execution_id = u.id
         where a.execution_id = c.execution_id and a.attempt_index = c.current_attempt_index;
    end if;

    with ended as (
        update ff_exec_core c set
            lifecycle_phase = 'terminal', ownership_state = 'unowned', eligibility_state = 'not_applicable',
            blocking_reason = 'none', blocking_detail = null, terminal_outcome = 'cancelled',
            attempt_state = case c.total_attempt_count when 0 then 'none' else 'attempt_terminal' end,
            current_attempt_id = null, current_suspension_id = null, current_waitpoint_id = null,
            lease_id = null, lease_ttl_ms = null, lease_expires_at_ms = null, lease_check_at_ms = null,
            lease_revoke_reason = null, worker_id = null, worker_instance_id = null,
            attempt_timeout_at_ms = null, attempt_remaining_ms = null, delay_until_ms = null, not_before_ms = null,
            failure_reason = null, failure_category = null, cancellation_reason = f.cancel_reason,
            cancelled_by = f.cancelled_by, terminal_at_ms = v_now, last_transition_at_ms = v_now,
            last_mutation_at_ms = v_now, last_event_ord = greatest(v_xid, c.last_event_ord)
          from unnest(v_plain) u(id)
         where c.execution_id = u.id
        returning c.execution_id
    ), noted as (
        insert into ff_flow_dispatch (event_id, flow_id, execution_id, outcome, created_at_ms, next_dispatch_at_ms)
        select coalesce(v.event_id, nextval('ff_event_id_seq')), f.flow_id, v.id, 'cancelled', v_now, v_now
          from unnest(v_said, v_event_ids) v(id, event_id)
         where not v_bare
    ), parents as (
        insert into ff_child_work (parent_id, action)
        select e.execution_id, 'check' from ended e
         where exists (select from ff_child k where k.parent_id = e.execution_id and not k.detached)
            or current_setting('transaction_isolation') <> 'read committed'
    )
    select count(*) into v_count from ended;

    if v_bare and v_count > 0 then
        update ff_flow_core x set live_members = x.live_members - v_count, last_mutation_at_ms = v_now
         where x.flow_id = f.flow_id;
        if exists (select from ff_cancel_backlog_member m where m.flow_id = f.flow_id) then
            delete from ff_cancel_backlog_member m where m.flow_id = f.flow_id and m.execution_id = any (v_plain);
            delete from ff_cancel_backlog b
             where b.flow_id = f.flow_id
               and not exists (select from ff_cancel_backlog_member m where m.flow_id = f.flow_id);
        end if;
    end if;
    foreach v_id in array v_others loop
        v_count := v_count + ff__cancel_member(f, v_id)::int;
    end loop;
    return v_count;
end
$$;
