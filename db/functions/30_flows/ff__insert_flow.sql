-- Writes a new flow and says so; a row of NULLs if the id is taken. Waits for a concurrent writer of the same id.
create or replace function ff__insert_flow(
    p_flow_id uuid, p_flow_kind text, p_namespace text, p_state text, p_tags jsonb
) returns ff_flow_core
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    f ff_flow_core;
begin
    insert into ff_flow_core (
        flow_id, partition_key, flow_kind, namespace, public_flow_state, tags, created_at_ms, last_mutation_at_ms)
    values (p_flow_id, ff__partition(p_flow_id), p_flow_kind, p_namespace, p_state, p_tags, v_now, v_now)
    on conflict do nothing
    returning * into f;
    if f.flow_id is not null then
        perform ff__emit_flow(p_flow_id, 'created', v_now);
    end if;
    return f;
end
$$;
