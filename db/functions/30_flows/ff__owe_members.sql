-- The backlog of a flow that was just cancelled: its members that have not ended, and from when on the engine ends them.
-- The caller holds the flow.
create or replace function ff__owe_members(f ff_flow_core, p_grace_ms bigint) returns void
language plpgsql volatile
as $$
begin
    if f.cancellation_policy = 'cancel_flow_only' then
        return;
    end if;
    insert into ff_cancel_backlog_member (flow_id, execution_id)
    select f.flow_id, c.execution_id from ff_exec_core c
     where c.flow_id = f.flow_id and c.lifecycle_phase <> 'terminal' order by c.execution_id
    on conflict do nothing;
    insert into ff_cancel_backlog (flow_id, requested_at_ms, requester, reason, cancellation_policy, grace_until_ms)
    select f.flow_id, f.terminal_at_ms, f.cancelled_by, f.cancel_reason, f.cancellation_policy,
           ff__time_after(f.terminal_at_ms, p_grace_ms)
     where exists (select from ff_cancel_backlog_member m where m.flow_id = f.flow_id)
    on conflict on constraint ff_cancel_backlog_pkey do update
       set requested_at_ms = excluded.requested_at_ms, requester = excluded.requester, reason = excluded.reason,
           cancellation_policy = excluded.cancellation_policy, grace_until_ms = excluded.grace_until_ms;
end
$$;
