-- Raises invalid_input for one argument.
create or replace function ff__invalid(p_arg text, p_reason text, p_detail jsonb default '{}') returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_input', format('%s %s', p_arg, p_reason),
                      jsonb_build_object('arg', p_arg, 'reason', p_reason) || p_detail);
end
$$;
