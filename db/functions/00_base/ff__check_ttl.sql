-- A time to live in milliseconds: 1 ms to 24 h. Errors: invalid_input.
create or replace function ff__check_ttl(p_arg text, p_value bigint) returns void
language plpgsql stable
as $$
begin
    if p_value is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif p_value not between 1 and 86400000 then
        perform ff__invalid(p_arg, 'must be between 1 and 86400000', jsonb_build_object('value', p_value));
    end if;
end
$$;
