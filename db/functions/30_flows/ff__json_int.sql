-- A whole number of a node or group: NULL if absent. Errors: invalid_input.
create or replace function ff__json_int(p_arg text, p_item jsonb, p_key text, p_min bigint, p_max bigint) returns bigint
language plpgsql stable
as $$
declare
    v numeric := (p_item ->> p_key)::numeric;
begin
    if v <> trunc(v) or v not between p_min and p_max then
        perform ff__invalid(p_arg, 'has a number out of range', jsonb_build_object('key', p_key));
    end if;
    return v::bigint;
end
$$;
