-- Locks: the flows, without waiting. Safe to run many at once.
create or replace function ff_project_flows(p_limit int default 200, out processed int, out errors int, out more boolean)
language plpgsql volatile security definer
set search_path from current
as $$
declare
    v_now bigint := ff_now_ms();
    v_flow uuid;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    -- Flows that live, the longest unseen first, and those that ended after they were last looked at.
    for v_flow in
        select f.flow_id
          from ff_flow_core f left join ff_flow_summary s on s.flow_id = f.flow_id
         where f.node_count > 0
           and (f.terminal_at_ms is null or f.live_members > 0 or s.flow_id is null
                or s.projected_at_ms <= f.last_mutation_at_ms)
           and (s.flow_id is null or s.projected_at_ms < v_now)
         order by s.projected_at_ms nulls first, f.flow_id limit p_limit
    loop
        begin
            perform from ff_flow_core f where f.flow_id = v_flow for update skip locked;
            if found then
                perform ff_project_flow_summary(v_flow);
                processed := processed + 1;
            end if;
        exception when others then
            errors := errors + 1;
        end;
    end loop;
    more := processed = p_limit and p_limit > 0
            and exists (select from ff_flow_core f left join ff_flow_summary s on s.flow_id = f.flow_id
                         where f.node_count > 0
                           and (f.terminal_at_ms is null or f.live_members > 0 or s.flow_id is null
                                or s.projected_at_ms <= f.last_mutation_at_ms)
                           and (s.flow_id is null or s.projected_at_ms < v_now));
end
$$;

comment on function ff_project_flows(int) is
$$Projects flows (ff_project_flow_summary): those that live, the longest unseen first, and those that ended, once more.

Errors: invalid_input$$;
