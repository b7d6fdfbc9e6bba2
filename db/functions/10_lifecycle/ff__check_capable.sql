-- A worker must have what an execution needs. Errors: capability_mismatch (DETAIL.missing, sorted).
create or replace function ff__check_capable(e ff_exec, p_capabilities text[]) returns void
language plpgsql stable
as $$
declare
    v_missing text[] := array(select t.token from ff_exec_input i, unnest(i.required_capabilities) t(token)
                               where i.execution_id = e.execution_id and t.token <> all (p_capabilities)
                               order by t.token collate "C");
begin
    if v_missing <> '{}' then
        perform ff__raise('capability_mismatch', format('the worker lacks %s', array_to_string(v_missing, ', ')),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'missing', to_jsonb(v_missing)));
    end if;
end
$$;
