-- Locks: flows and executions, without waiting. Safe to run many at once.
create or replace function ff_drain_sibling_cancels(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    o record;
    e ff_exec;
    v_seen int := 0;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    for o in select x.* from ff_cancel_dispatch_outbox x order by x.enqueued_at_ms limit p_limit loop
        v_seen := v_seen + 1;
        begin
            if ff__try_flow(o.flow_id) then
                perform from ff_exec_core c where c.execution_id = o.target_eid for update skip locked;
                if found or not exists (select from ff_exec_core c where c.execution_id = o.target_eid) then
                    e := ff__open(o.target_eid);
                    -- Gone or ended: nothing to do. Needed again: neither.
                    if e.lifecycle_phase <> 'terminal' and not ff__feeds_pending(o.flow_id, o.target_eid) then
                        perform ff__cancel(e, 'override', o.reason, 'engine');
                    end if;
                    delete from ff_cancel_dispatch_outbox x
                     where x.target_eid = o.target_eid and x.downstream_eid = o.downstream_eid;
                    processed := processed + 1;
                end if;
                perform ff__close_flow(o.flow_id);
            elsif not exists (select from ff_flow_core f where f.flow_id = o.flow_id) then
                delete from ff_cancel_dispatch_outbox x where x.flow_id = o.flow_id and x.target_eid = o.target_eid;
                processed := processed + 1;
            end if;
        exception when others then
            errors := errors + 1;
        end;
    end loop;
    more := v_seen = p_limit and processed > 0;
end
$$;

comment on function ff_drain_sibling_cancels(int) is
$$Cancels members that a decided group no longer needs and that were busy when it was decided.

Errors: invalid_input$$;
