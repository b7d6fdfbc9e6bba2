-- Groups were decided, or closed by the end of their child: each member that fed one of them, still runs, feeds nothing
-- undecided any more and stands in a decided group that cancels the rest, is ended at once, or noted in the outbox if it
-- is busy. A staged edge does not count. Each candidate is judged once, by its own edges. The caller holds the flow.
-- Returns how many were ended.
create or replace function ff__cancel_siblings(p_flow_id uuid, p_downstreams uuid[]) returns int
language plpgsql volatile
as $$
declare
    v_count int := 0;
    v_reason text;
    r record;
    e ff_exec;
begin
    for r in
        with u as materialized (
            select c.execution_id as id
              from (select distinct d.upstream_eid as id
                      from unnest(p_downstreams) x(id)
                     cross join lateral (
                           select t.upstream_eid from ff_edge t
                            where t.downstream_eid = x.id and t.edge_state = 'applied'
                           offset 0) d) y
              join ff_exec_core c on c.execution_id = y.id and c.lifecycle_phase <> 'terminal')
        select u.id as upstream_eid, g.downstream_eid, g.group_state
          from u
         cross join lateral (
               select t.downstream_eid, k.group_state
                 from ff_edge t
                cross join lateral (
                      select y.group_state, y.on_satisfied from ff_edge_group y
                       where y.flow_id = p_flow_id and y.downstream_eid = t.downstream_eid offset 0) k
                where t.upstream_eid = u.id and t.edge_state = 'applied'
                  and k.on_satisfied = 'cancel_remaining' and k.group_state in ('satisfied', 'impossible')
                limit 1) g
         where not ff__feeds_pending(p_flow_id, u.id)
         order by u.id
    loop
        v_reason := 'sibling_quorum_' || r.group_state;
        e := ff__try_open(r.upstream_eid);
        if e.execution_id is not null then
            if e.lifecycle_phase <> 'terminal' then
                perform ff__cancel(e, 'override', v_reason, 'engine');
                v_count := v_count + 1;
            end if;
        else
            insert into ff_cancel_dispatch_outbox (target_eid, downstream_eid, flow_id, reason, enqueued_at_ms)
            values (r.upstream_eid, r.downstream_eid, p_flow_id, v_reason, ff__now_ms())
            on conflict do nothing;
        end if;
    end loop;
    return v_count;
end
$$;
