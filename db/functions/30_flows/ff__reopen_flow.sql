-- A completed or failed flow is open again: something in it lives.
create or replace function ff__reopen_flow(f ff_flow_core, p_now_ms bigint) returns void
language plpgsql volatile
as $$
begin
    if f.public_flow_state in ('completed', 'failed') then
        update ff_flow_core x set public_flow_state = 'open', terminal_at_ms = null, projected = false
         where x.flow_id = f.flow_id;
        perform ff__emit_flow(f.flow_id, 'reopened', p_now_ms, null,
                              jsonb_build_object('previous_state', f.public_flow_state));
    end if;
end
$$;
