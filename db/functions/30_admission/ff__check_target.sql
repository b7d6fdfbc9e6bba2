-- What to attach a limit to: an execution or a flow. Errors: invalid_input.
create or replace function ff__check_target(p_execution_id text, p_flow_id uuid) returns void
language plpgsql stable
as $$
begin
    if num_nonnulls(p_execution_id, p_flow_id) <> 1 then
        perform ff__invalid('p_execution_id', 'or p_flow_id must be given, and not both');
    end if;
end
$$;
