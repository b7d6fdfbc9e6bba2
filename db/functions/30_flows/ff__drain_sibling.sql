-- What ff_drain_sibling_cancels does with one row; true if it was processed, as ff__sweep_row. p_key: target and
-- downstream of a row of the outbox, or child and the id of a row of ff_child_work. Locks the flow and the execution,
-- without waiting.
create or replace function ff__drain_sibling(p_key text) returns boolean
language plpgsql volatile
as $$
declare
    o ff_cancel_dispatch_outbox;
    w ff_child_work;
    e ff_exec;
begin
    if p_key like 'child %' then
        select x.* into w from ff_child_work x
         where x.work_id = split_part(p_key, ' ', 2)::bigint for update skip locked;
        return found and ff__child_work(w, false) = 'done';
    end if;
    select x.* into o from ff_cancel_dispatch_outbox x
     where x.target_eid = split_part(p_key, ' ', 1)::uuid and x.downstream_eid = split_part(p_key, ' ', 2)::uuid;
    if not found then
        return false;
    elsif not ff__try_flow(o.flow_id) then
        if exists (select from ff_flow_core f where f.flow_id = o.flow_id) then
            return false;
        end if;
        delete from ff_cancel_dispatch_outbox x where x.flow_id = o.flow_id and x.target_eid = o.target_eid;
        return true;
    end if;
    e := ff__try_open(o.target_eid, true);
    if e.execution_id is null and exists (select from ff_execution c where c.execution_id = o.target_eid) then
        perform ff__close_flow(o.flow_id);
        return false;
    end if;
    -- Gone, ended, or needed again by a pending group: only the row goes.
    if e.lifecycle_phase <> 'terminal' and not ff__feeds_pending(o.flow_id, o.target_eid) then
        perform ff__cancel(e, 'override', o.reason, 'engine');
    end if;
    delete from ff_cancel_dispatch_outbox x
     where x.target_eid = o.target_eid and x.downstream_eid = o.downstream_eid;
    perform ff__close_flow(o.flow_id);
    return true;
end
$$;
