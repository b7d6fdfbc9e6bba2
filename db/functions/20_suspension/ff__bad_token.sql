-- Raises invalid_token; says nothing but what the caller said.
create or replace function ff__bad_token(p_wire_id text, p_waitpoint_id uuid) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_token', 'the token does not open this waitpoint',
                      jsonb_build_object('execution_id', p_wire_id, 'waitpoint_id', p_waitpoint_id));
end
$$;
