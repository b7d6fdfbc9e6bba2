-- Locks: the flows and executions it deletes, without waiting. Executions with spend that ff_sweep_terminal_spend still
-- has to release are kept.
create or replace function ff_trim_retention(
    p_retention_ms bigint default null,
    p_lane_id text default null,
    p_namespace text default null,
    p_limit int default 1000,
    out processed int,
    out errors int,
    out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_keep bigint;
    v_keep_failed bigint;
    v_scan refcursor;
begin
    perform ff__check_time('p_retention_ms', p_retention_ms, p_from_ms => v_now);
    perform ff__check_limit(p_limit, 100000);
    if p_lane_id is not null then
        perform ff__check_lane_id(p_lane_id);
    end if;
    if p_namespace is not null then
        perform ff__check_text('p_namespace', p_namespace, 1, 64);
    end if;
    v_keep := coalesce(p_retention_ms, (select s.value::bigint from ff_setting s where s.name = 'retention_ms'));
    v_keep_failed := coalesce(p_retention_ms,
                              (select s.value::bigint from ff_setting s where s.name = 'retention_failed_ms'));
    -- The indexes are by retention and outcome: probes find the classes, and the class with the oldest row comes first.
    -- (IS NULL is not an equality for the planner, so retention_ms is in the ORDER BY.)
    -- Executions, then flows, then flows that never had a member. Keys: see ff__trim_rows.
    open v_scan for
        with recursive own as (
            (select c.retention_ms, c.state, c.terminal_at_ms from ff_execution c
              where c.terminal_at_ms is not null and c.flow_id is null and c.retention_ms > -1
              order by c.retention_ms, c.state, c.terminal_at_ms limit 1)
            union all
            select n.*
              from own o
             cross join lateral (
                   select c.retention_ms, c.state, c.terminal_at_ms from ff_execution c
                    where c.terminal_at_ms is not null and c.flow_id is null
                      and (c.retention_ms, c.state) > (o.retention_ms, o.state)
                    order by c.retention_ms, c.state, c.terminal_at_ms limit 1) n),
        flow as (
            (select f.retention_ms, f.unsuccessful from ff_flow_core f where f.terminal_at_ms is not null
              order by f.retention_ms, f.unsuccessful limit 1)
            union all
            select n.*
              from flow o
             cross join lateral (
                   select f.retention_ms, f.unsuccessful from ff_flow_core f
                    where f.terminal_at_ms is not null
                      and (f.retention_ms, f.unsuccessful) > (o.retention_ms, o.unsuccessful)
                    order by f.retention_ms, f.unsuccessful limit 1) n)
        select 'x' || x.execution_id
          from (select o.retention_ms, o.state, o.terminal_at_ms, v_now - o.retention_ms as until_ms from own o
                union all
                select null, d.state, h.terminal_at_ms,
                       v_now - ff__retention_ms(null, d.state, v_keep, v_keep_failed)
                  from unnest('{completed,skipped,failed,cancelled,expired}'::ff_state[]) d(state)
                 cross join lateral (
                       select c.terminal_at_ms from ff_execution c
                        where c.terminal_at_ms is not null and c.flow_id is null and c.retention_ms is null
                          and c.state = d.state
                        order by c.retention_ms, c.terminal_at_ms limit 1) h
                 order by 3) k
         cross join lateral (
               (select c.execution_id, c.lane_id, c.namespace, c.spends from ff_execution c
                 where c.terminal_at_ms is not null and c.flow_id is null and c.retention_ms = k.retention_ms
                   and c.state = k.state and c.terminal_at_ms <= k.until_ms
                 order by c.terminal_at_ms)
               union all
               (select c.execution_id, c.lane_id, c.namespace, c.spends from ff_execution c
                 where c.terminal_at_ms is not null and c.flow_id is null and c.retention_ms is null
                   and k.retention_ms is null and c.state = k.state
                   and c.terminal_at_ms <= k.until_ms
                 order by c.retention_ms, c.terminal_at_ms)) x
         where not x.spends and (p_lane_id is null or x.lane_id = p_lane_id)
           and (p_namespace is null or x.namespace = p_namespace)
        union all
        select 'f' || x.flow_id
          from flow o
         cross join lateral (
               select f.flow_id from ff_flow_core f
                where f.retention_ms = o.retention_ms and f.unsuccessful = o.unsuccessful
                  and f.terminal_at_ms <= v_now - case when o.retention_ms >= 0 then o.retention_ms
                                                       when o.unsuccessful then v_keep_failed else v_keep end
                  and p_lane_id is null and (p_namespace is null or f.namespace = p_namespace)
                order by f.terminal_at_ms) x
        union all
        (select 'f' || f.flow_id from ff_flow_core f
          where f.node_count = 0 and f.terminal_at_ms is null and f.created_at_ms <= v_now - v_keep
            and p_lane_id is null and (p_namespace is null or f.namespace = p_namespace)
          order by f.created_at_ms);
    select s.* into processed, errors, more
      from ff__sweep('trim_retention', p_limit, v_scan, p_lane_id is null and p_namespace is null,
                     array[v_keep, v_keep_failed]) s;
end
$$;

comment on function ff_trim_retention(bigint, text, text, int) is
$$Deletes executions whose retention has passed, with all their dependent rows. They are kept for policy.retention_ms if
set; else for the setting retention_ms (7 days) when they ended completed or skipped, retention_failed_ms (30 days) when
they ended failed, cancelled or expired. p_retention_ms, if given, replaces both settings. A flow is deleted as a whole,
when all its members have ended and the longest of their retentions has passed, and counts as one; not when p_lane_id is
given. Oldest first, at most p_limit per call; more says whether to call again. Events and idempotency keys are kept:
they have their own retention.

Errors: invalid_input, invalid_lane_id$$;
-- grant: ff_admin
