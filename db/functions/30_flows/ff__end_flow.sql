-- An open flow in which nothing lives and nothing waits for dispatch ends: failed if a member ended badly and nobody
-- took that for granted, else completed. The caller holds the flow.
create or replace function ff__end_flow(p_flow_id uuid) returns void
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    v_unsuccessful boolean;
    v_state text;
begin
    perform from ff_flow_core f
      where f.flow_id = p_flow_id and f.public_flow_state = 'open' and f.node_count > 0 and f.live_members = 0
        and not exists (select from ff_flow_dispatch q where q.flow_id = p_flow_id);
    if not found then
        return;
    end if;
    v_unsuccessful := exists (select from ff_exec_core c
                               where c.flow_id = p_flow_id and c.terminal_outcome in ('failed', 'cancelled', 'expired'));
    v_state := case when v_unsuccessful and ff__flow_failed(p_flow_id) then 'failed' else 'completed' end;
    update ff_flow_core f set public_flow_state = v_state, terminal_at_ms = v_now, unsuccessful = v_unsuccessful
     where f.flow_id = p_flow_id;
    perform ff__emit_flow(p_flow_id, v_state, v_now);
end
$$;
