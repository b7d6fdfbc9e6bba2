-- Ends one member of a cancelled flow, if its policy covers it as it is now; whether it did. The caller holds the flow.
create or replace function ff__cancel_member(f ff_flow_core, p_execution_id uuid) returns boolean
language plpgsql volatile
as $$
declare
    e ff_exec := ff__open(p_execution_id);
begin
    if e.lifecycle_phase = 'terminal'
       or not ff__covered(f.cancellation_policy, e.ownership_state, e.lease_expires_at_ms, e.now_ms) then
        return false;
    end if;
    perform ff__cancel(e, 'override', f.cancel_reason, f.cancelled_by);
    return true;
end
$$;
