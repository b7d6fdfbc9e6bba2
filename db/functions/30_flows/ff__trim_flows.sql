-- The flows that ff_trim_retention may delete, each as a whole, oldest first: nothing in them lives, nothing waits for
-- dispatch, and all of their members may go. Looked at again by ff__trim_flow. Flows that ended too lately for the default
-- retention may go if every member's own policy says so; of these the 1000 oldest of each kind are looked at. p_seen: not
-- these (an f before each).
create or replace function ff__trim_flows(
    p_retention_ms bigint, p_retention_failed_ms bigint, p_namespace text, p_limit int, p_seen text[]
) returns uuid[]
language plpgsql stable
as $$
declare
    v_now bigint := ff__now_ms();
begin
    return array(
        select x.flow_id
          from (select a.*, k.keep_ms
                  from (values (false, p_retention_ms), (true, p_retention_failed_ms)) k(unsuccessful, keep_ms)
                 cross join lateral (
                       select t.* from ff_flow_core t
                        where t.unsuccessful = k.unsuccessful and t.terminal_at_ms <= v_now - k.keep_ms
                       union all
                       (select t.* from ff_flow_core t
                         where t.unsuccessful = k.unsuccessful and t.terminal_at_ms > v_now - k.keep_ms
                         order by t.terminal_at_ms limit 1000)) a
                union all
                select c.*, p_retention_ms from ff_flow_core c
                 where c.node_count = 0 and c.terminal_at_ms is null and c.created_at_ms <= v_now - p_retention_ms) x
         where x.live_members = 0 and (p_namespace is null or x.namespace = p_namespace)
           and (x.node_count > 0 or coalesce(x.terminal_at_ms, x.created_at_ms) <= v_now - x.keep_ms)
           and not exists (select from ff_flow_dispatch q where q.flow_id = x.flow_id)
           and not exists (select from ff_exec_core c
                            where c.flow_id = x.flow_id
                              and x.terminal_at_ms + ff__retention_ms(c.retention_ms, c.terminal_outcome, p_retention_ms,
                                                                      p_retention_failed_ms) > v_now)
           and not exists (select from ff_exec_core c where c.flow_id = x.flow_id
                              and (c.spends or ff__owes_spend(c.execution_id)))
           and not ff__put_off('trim_retention', 'f' || x.flow_id)
           and ('f' || x.flow_id) not in (select unnest(p_seen))
         order by coalesce(x.terminal_at_ms, x.created_at_ms) limit p_limit);
end
$$;
