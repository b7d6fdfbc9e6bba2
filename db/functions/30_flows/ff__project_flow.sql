-- ff_project_flow_summary for a sweep: without waiting, and as ff__sweep_row answers.
create or replace function ff__project_flow(p_flow_id uuid) returns text
language plpgsql volatile
as $$
begin
    perform from ff_flow_core f where f.flow_id = p_flow_id for update skip locked;
    if not found then
        return case when exists (select from ff_flow_core f where f.flow_id = p_flow_id) then 'busy' else 'idle' end;
    end if;
    perform @extschema@.ff_project_flow_summary(p_flow_id);
    return 'done';
end
$$;
