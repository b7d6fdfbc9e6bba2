-- Raises invalid_timeout.
create or replace function ff__invalid_timeout(p_reason text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_timeout', format('the timeout of the suspension %s', p_reason),
                      jsonb_build_object('reason', p_reason));
end
$$;
