-- One level of a policy: must be an object with no other keys than these. Returns it without its JSON nulls, which
-- mean "absent". Errors: invalid_policy (DETAIL.path).
create or replace function ff__policy_object(p_value jsonb, p_path text, p_keys text[]) returns jsonb
language plpgsql stable
as $$
declare
    v_unknown text;
begin
    if jsonb_typeof(p_value) <> 'object' then
        perform ff__policy_fault(p_path, 'must be an object');
    end if;
    select min(k.key) into v_unknown from jsonb_object_keys(p_value) k(key) where k.key <> all (p_keys);
    if v_unknown is not null then
        perform ff__policy_fault(concat_ws('.', nullif(p_path, ''), left(v_unknown, 64)), 'is not a known key');
    end if;
    return (select coalesce(jsonb_object_agg(t.key, t.value), '{}')
              from jsonb_each(p_value) t where jsonb_typeof(t.value) <> 'null');
end
$$;
