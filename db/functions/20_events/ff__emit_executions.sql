-- Events of executions that were just written, as they stand now: one of their lease (p_lease_event), or one of their
-- completion (p_outcome) with which the lease ends if p_lease_event is given. Executions that share ord and worker share a
-- row. p_want_ids: returns the executions and the ids of their events, which are NULL if the type is muted.
create or replace function ff__emit_executions(
    p_ids uuid[], p_lease_event text, p_lease_reason text, p_outcome text, p_reason text, p_now_ms bigint,
    p_want_ids boolean default false, out ids uuid[], out event_ids bigint[]
)
language plpgsql volatile
as $$
declare
    v_found bigint[];
    r record;
begin
    for r in
        select c.last_event_ord, c.worker_id, c.worker_instance_id, array_agg(c.execution_id order by u.n) as ids,
               array_agg(c.attempt_index order by u.n) as attempts, array_agg(c.flow_id order by u.n) as flows,
               array_agg(c.lane_id order by u.n) as lanes, array_agg(c.namespace order by u.n) as namespaces,
               array_agg(c.tags order by u.n) as tags, array_agg(c.lease_id order by u.n) as leases,
               array_agg(c.lease_epoch order by u.n) as epochs
          from unnest(p_ids) with ordinality u(id, n)
          join ff_execution c on c.execution_id = any (array[u.id])
         group by c.last_event_ord, c.worker_id, c.worker_instance_id
    loop
        v_found := ff__emit_many(
            case when p_outcome is null then 'lease' else 'completion' end, coalesce(p_outcome, p_lease_event),
            case when p_outcome is null then p_lease_reason else p_reason end, p_now_ms, r.last_event_ord, r.ids, r.attempts,
            r.flows, r.lanes, r.namespaces, r.tags, case when p_lease_event is not null then r.leases end,
            case when p_lease_event is not null then r.epochs end,
            case when p_lease_event is not null then r.worker_id end,
            case when p_lease_event is not null then r.worker_instance_id end,
            case when p_outcome is not null then p_lease_event end,
            case when p_outcome is not null then p_lease_reason end, p_want_ids);
        if p_want_ids then
            ids := ids || r.ids;
            event_ids := event_ids || coalesce(v_found, array_fill(null::bigint, array[cardinality(r.ids)]));
        end if;
    end loop;
end
$$;
