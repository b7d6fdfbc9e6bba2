-- Raises flow_conflict: the id belongs to another flow.
create or replace function ff__flow_conflict(p_flow_id uuid) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('flow_conflict', 'the flow id is taken',
                      (select jsonb_build_object('flow_id', f.flow_id, 'flow_kind', f.flow_kind, 'namespace', f.namespace)
                         from ff_flow_core f where f.flow_id = p_flow_id));
end
$$;
