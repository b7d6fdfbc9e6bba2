-- Locks: flows, children, siblings, all without waiting. Safe to run many at once.
create or replace function ff_dispatch_completions(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v_now bigint := ff_now_ms();
    v_flows uuid[];
    v_flow uuid;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    select array(select distinct y.flow_id from unnest(array_agg(x.flow_id)) y(flow_id) order by y.flow_id)
      into v_flows
      from (select q.flow_id from ff_flow_dispatch q where q.next_dispatch_at_ms <= v_now
             order by q.next_dispatch_at_ms limit p_limit) x;
    foreach v_flow in array v_flows loop
        begin
            if ff__try_flow(v_flow) then
                processed := processed + (ff__dispatch_flow(v_flow)).rows_done;
                perform set_config('ff.flow', '', true);
            elsif not exists (select from ff_flow_core f where f.flow_id = v_flow) then
                delete from ff_flow_dispatch q where q.flow_id = v_flow;
            end if;
        exception when others then
            -- Put off, so that what cannot be dispatched does not stand in front of what can.
            errors := errors + 1;
            update ff_flow_dispatch q
               set dispatch_attempts = q.dispatch_attempts + 1,
                   next_dispatch_at_ms = v_now + least(60000, 1000 * 2 ^ least(q.dispatch_attempts, 12))::bigint
             where q.event_id in (select x.event_id from ff_flow_dispatch x where x.flow_id = v_flow
                                     for update skip locked);
        end;
    end loop;
    -- What was cut short by its bounds, or stood behind the limit, and is due.
    v_now := ff_now_ms();
    more := processed > 0 and exists (select from ff_flow_dispatch q where q.next_dispatch_at_ms <= v_now);
end
$$;

comment on function ff_dispatch_completions(int) is
$$Passes on ends of flow members that nobody has passed on yet (ff_dispatch_completion), grouped by flow. A claim that finds
nothing does the same.

Errors: invalid_input$$;
