-- Raises invalid_waitpoint_binding.
create or replace function ff__binding_fault(p_reason text, p_detail jsonb default '{}') returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_waitpoint_binding', format('the waitpoints do not fit the condition: %s', p_reason),
                      jsonb_build_object('reason', p_reason) || p_detail);
end
$$;
