-- The last member of a flow has ended and nothing waits for dispatch. An open flow ends: failed if a member ended badly
-- and no edge allowed for that, else completed. What retention goes by is stored, of a cancelled flow too (see the
-- columns unsuccessful and retention_ms). The caller holds the flow.
create or replace function ff__end_flow(p_flow_id uuid) returns void
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    v_state text;
    v_failed boolean;
    v_unsuccessful boolean;
    v_retention bigint;
begin
    select f.public_flow_state into v_state from ff_flow_core f
     where f.flow_id = p_flow_id and f.public_flow_state in ('open', 'cancelled') and f.node_count > 0
       and f.live_members = 0 and not exists (select from ff_flow_dispatch q where q.flow_id = p_flow_id);
    if not found then
        return;
    end if;
    select bool_or(c.terminal_outcome in ('failed', 'cancelled', 'expired')),
           bool_or(c.terminal_outcome in ('failed', 'cancelled', 'expired') and c.retention_ms is null),
           case when count(*) = count(c.retention_ms) then max(c.retention_ms) else -1 end
      into v_failed, v_unsuccessful, v_retention
      from ff_exec_core c where c.flow_id = p_flow_id;
    if v_state = 'cancelled' then
        update ff_flow_core f set unsuccessful = v_unsuccessful, retention_ms = v_retention
         where f.flow_id = p_flow_id
           and (f.unsuccessful, f.retention_ms) <> (v_unsuccessful, v_retention);
        return;
    end if;
    v_state := case when v_failed and ff__flow_failed(p_flow_id) then 'failed' else 'completed' end;
    update ff_flow_core f
       set public_flow_state = v_state, terminal_at_ms = v_now, unsuccessful = v_unsuccessful,
           retention_ms = v_retention
     where f.flow_id = p_flow_id;
    perform ff__emit_flow(p_flow_id, v_state, v_now);
end
$$;
