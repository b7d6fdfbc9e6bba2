-- A reason to suspend for. Errors: invalid_reason_code.
create or replace function ff__check_reason_code(p_reason_code text) returns void
language plpgsql stable
as $$
begin
    if ff__suspended_state(p_reason_code) is null then
        perform ff__raise('invalid_reason_code', 'not a reason to suspend for',
                          jsonb_build_object('reason_code', left(p_reason_code, 64)));
    end if;
end
$$;
