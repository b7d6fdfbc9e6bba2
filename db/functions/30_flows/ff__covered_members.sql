-- Locks members in the backlog of a cancelled flow that its policy covers and that have not ended, up to p_limit, in the
-- order of their ids; passed over are busy ones (by their stream, too), and those that ff_drain_cancel_backlog failed to
-- end and whose next try has not come. The caller holds the flow.
create or replace function ff__covered_members(f ff_flow_core, p_limit int) returns uuid[]
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
begin
    return ff__free_streams(array(
        select c.execution_id
          from ff_cancel_backlog_member m join ff_exec_core c on c.execution_id = m.execution_id
         where m.flow_id = f.flow_id and c.lifecycle_phase <> 'terminal'
           and ff__covered(f.cancellation_policy, c.ownership_state, c.lease_expires_at_ms, v_now)
           and not ff__is_backed_off('drain_cancel_backlog', m.execution_id::text, v_now)
         order by m.execution_id limit p_limit for update of c skip locked));
end
$$;
