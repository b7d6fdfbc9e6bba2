-- The events that a row of ff_event_log holds, in their order: what the view ff_event shows of it. Plain SQL, so that it
-- is inlined.
create or replace function ff__events_in(l ff_event_log) returns setof ff_event
language sql stable
as $$
    select (l).ord, (l).event_id + 2 * x.n - h.ended::int, (l).occurred_at_ms, x.execution_id, x.flow_id,
           case when h.ended or (l).family = 'lease' then x.lease_id end, ((l).wait).suspension_id, ((l).wait).waitpoint_id,
           ((l).wait).signal_id, case when h.ended or (l).family = 'lease' then x.lease_epoch end, (l).gen, x.attempt_index,
           get_byte(uuid_send(coalesce(x.execution_id, x.flow_id)), 15)::smallint,
           case when h.ended then 'lease' else (l).family end, case when h.ended then (l).lease_type else (l).event_type end,
           x.lane_id, x.namespace, case when x.execution_id is null then x.tags else coalesce(x.tags, '{}') end,
           case when h.ended or (l).family in ('lease', 'worker') then (l).worker_id end,
           case when h.ended or (l).family in ('lease', 'worker') then (l).worker_instance_id end,
           ((l).wait).source_type, ((l).wait).source_identity,
           case when not h.ended and (l).family = 'completion' then (l).event_type end, ((l).wait).effect,
           case when h.ended then (l).lease_reason else (l).reason end, case when not h.ended then (l).details end
      from (select 0::bigint as n, (l).execution_id, (l).attempt_index, (l).flow_id, (l).lane_id, (l).namespace, (l).tags,
                   (l).lease_id, (l).lease_epoch
             where (l).size is null
            union all
            select u.n - 1, u.execution_id, coalesce(u.attempt_index, (l).attempt_index), coalesce(u.flow_id, (l).flow_id),
                   coalesce(u.lane_id, (l).lane_id), coalesce(u.namespace, (l).namespace), u.tags, u.lease_id,
                   coalesce(u.lease_epoch, (l).lease_epoch)
              from unnest(((l).batch).execution_ids, ((l).batch).attempt_indexes, ((l).batch).flow_ids, ((l).batch).lane_ids,
                          ((l).batch).namespaces, ((l).batch).tag_sets, ((l).batch).lease_ids, ((l).batch).lease_epochs)
                   with ordinality
                   u(execution_id, attempt_index, flow_id, lane_id, namespace, tags, lease_id, lease_epoch, n)
             where (l).size is not null) x
     cross join (values (true), (false)) h(ended)
     where not h.ended or (l).family = 'completion' and (l).lease_type is not null
     order by x.n, h.ended desc
$$;
