-- Raises invalid_schedule: a field of it, what it says, what is wrong with it.
create or replace function ff__invalid_schedule(p_field text, p_value text, p_reason text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_schedule', format('%s "%s": %s', p_field, left(p_value, 80), p_reason),
                      jsonb_build_object('field', p_field, 'value', left(p_value, 80), 'reason', p_reason));
end
$$;
