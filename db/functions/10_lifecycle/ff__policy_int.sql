-- One whole number of a policy, or p_default when it is absent. Errors: invalid_policy (DETAIL.path).
create or replace function ff__policy_int(
    p_object jsonb, p_path text, p_key text, p_min bigint, p_max bigint, p_default bigint default null
) returns bigint
language plpgsql stable
as $$
declare
    v_path text := concat_ws('.', nullif(p_path, ''), p_key);
    v_value jsonb := p_object -> p_key;
    v_number numeric;
begin
    if v_value is null then
        return p_default;
    elsif jsonb_typeof(v_value) <> 'number' then
        perform ff__policy_fault(v_path, 'must be a number');
    end if;
    v_number := v_value::numeric;
    if v_number not between p_min and p_max or v_number <> trunc(v_number) then
        perform ff__policy_fault(v_path, format('must be a whole number between %s and %s', p_min, p_max));
    end if;
    return v_number::bigint;
end
$$;
