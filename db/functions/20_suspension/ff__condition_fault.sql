-- Raises invalid_resume_condition for one node.
create or replace function ff__condition_fault(p_reason text, p_path text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_resume_condition',
                      format('the resume condition is not acceptable%s: %s',
                             case when p_path = '' then '' else ' at ' || p_path end, p_reason),
                      jsonb_build_object('reason', p_reason, 'path', p_path));
end
$$;
