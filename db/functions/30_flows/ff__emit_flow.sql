-- An event of a flow that the caller holds: family flow, or p_family, with the flow's namespace and tags. Writes the
-- flow's row: its place in the event order.
create or replace function ff__emit_flow(
    p_flow_id uuid, p_event_type text, p_now_ms bigint, p_reason text default null, p_details jsonb default null,
    p_family text default 'flow'
) returns void
language plpgsql volatile
as $$
declare
    v_gen int := ff__event_gate(p_family, p_event_type);
    v_namespace text;
    v_tags jsonb;
    v_ord bigint;
begin
    if v_gen is null then
        return;
    end if;
    update ff_flow_core x
       set last_event_ord = greatest(pg_current_xact_id()::text::bigint, x.last_event_ord), last_mutation_at_ms = p_now_ms
     where x.flow_id = p_flow_id
    returning x.namespace, x.tags, x.last_event_ord into v_namespace, v_tags, v_ord;
    if found then
        perform ff__emit_other(v_gen, p_family, p_event_type, p_now_ms, v_ord, p_reason, p_details, v_namespace, v_tags,
                               p_flow_id);
    end if;
end
$$;
