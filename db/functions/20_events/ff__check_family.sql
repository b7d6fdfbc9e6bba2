-- A family of events. Errors: invalid_input.
create or replace function ff__check_family(p_family text) returns void
language plpgsql stable
as $$
begin
    if ff__event_types(p_family) is null then
        perform ff__invalid('p_family', 'must be completion, lease, suspension, signal, operator, worker or flow',
                            jsonb_build_object('family', left(p_family, 64)));
    end if;
end
$$;
