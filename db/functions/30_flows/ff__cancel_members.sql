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
    if v_attempted is not null then
        with ended as (
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
             where a.execution_id = c.execution_id and a.attempt_index = c.current_attempt_index
            returning c.execution_id, c.partition_key, c.lane_id, c.namespace, c.tagged, c.current_attempt_index,
                      c.last_event_ord, c.ownership_state, c.lease_id, c.lease_epoch, c.lease_expires_at_ms, c.worker_id,
                      c.worker_instance_id, c.deadline_at_ms, c.attempt_timeout_at_ms
        )
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, reason, lease_id, lease_epoch, worker_id, worker_instance_id)
        select 'lease', v.event_type, y.gen, greatest(v_xid, e.last_event_ord), v_now, e.execution_id, e.partition_key,
               f.flow_id, e.lane_id, e.namespace,
               case when e.tagged then (select i.tags from ff_exec_input i where i.execution_id = e.execution_id)
                    else '{}' end,
               e.current_attempt_index,
               case when v.event_type = 'released' then 'cancel'
                    when e.deadline_at_ms <= v_now then 'execution_deadline'
                    when e.attempt_timeout_at_ms <= v_now then 'attempt_timeout' else 'ttl' end,
               e.lease_id, e.lease_epoch, e.worker_id, e.worker_instance_id
          from ended e
         cross join lateral (
               select case when e.lease_expires_at_ms > v_now then 'released' else 'expired' end as event_type) v
         cross join ff_event_family y
         where e.ownership_state = 'leased'
           and y.family = 'lease' and v.event_type <> all (y.muted) and '*' <> all (y.muted)
           and (y.notify <> 'commit' or ff__ring(y.family))
         order by e.execution_id;
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
        returning c.execution_id, c.partition_key, c.lane_id, c.namespace, c.tagged, c.current_attempt_index,
                  c.last_event_ord
    ), events as (
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, execution_id, partition_key, flow_id, lane_id, namespace, tags,
            attempt_index, reason, outcome)
        select y.family, 'cancelled', y.gen, e.last_event_ord, v_now, e.execution_id, e.partition_key, f.flow_id,
               e.lane_id, e.namespace,
               case when e.tagged then (select i.tags from ff_exec_input i where i.execution_id = e.execution_id)
                    else '{}' end,
               e.current_attempt_index, f.cancel_reason, 'cancelled'
          from ended e
         cross join ff_event_family y
         where y.family = 'completion' and 'cancelled' <> all (y.muted) and '*' <> all (y.muted)
           and (y.notify <> 'commit' or ff__ring(y.family))
         order by e.execution_id
        returning event_id, execution_id
    ), noted as (
        insert into ff_flow_dispatch (event_id, flow_id, execution_id, outcome, created_at_ms, next_dispatch_at_ms)
        select coalesce(v.event_id, nextval('ff_event_id_seq')), f.flow_id, e.execution_id, 'cancelled', v_now, v_now
          from ended e left join events v on v.execution_id = e.execution_id
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
