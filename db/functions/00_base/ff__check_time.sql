-- A time, or with p_from_ms a duration that is added to that time: p_min or more, and not past ff__last_ms. NULL passes.
-- Errors: invalid_input.
create or replace function ff__check_time(p_arg text, p_value bigint, p_min bigint default 0, p_from_ms bigint default 0)
returns void
language plpgsql stable
as $$
begin
    if p_value not between p_min and ff__last_ms(p_from_ms) then
        perform ff__invalid(p_arg, format('must be between %s and %s', p_min, ff__last_ms(p_from_ms)),
                            jsonb_build_object('value', p_value));
    end if;
end
$$;
