-- A list of strings of a policy, distinct ones in the order given, or NULL when absent.
-- Errors: invalid_policy (DETAIL.path).
create or replace function ff__policy_texts(
    p_object jsonb, p_path text, p_key text, p_max_items int, p_max_chars int
) returns jsonb
language plpgsql stable
as $$
declare
    v_path text := concat_ws('.', nullif(p_path, ''), p_key);
    v_value jsonb := p_object -> p_key;
begin
    if v_value is null then
        return null;
    elsif jsonb_typeof(v_value) <> 'array' then
        perform ff__policy_fault(v_path, 'must be an array of strings');
    elsif jsonb_array_length(v_value) > p_max_items then
        perform ff__policy_fault(v_path, format('must have at most %s items', p_max_items));
    elsif exists (select from jsonb_array_elements(v_value) x(item)
                   where jsonb_typeof(x.item) <> 'string'
                      or length(x.item #>> '{}') not between 1 and p_max_chars
                      or x.item #>> '{}' ~ E'[\\x01-\\x1f\\x7f]') then
        perform ff__policy_fault(v_path, format('must hold strings of 1 to %s characters, none a control character',
                                                p_max_chars));
    end if;
    return (select coalesce(jsonb_agg(x.item order by x.at), '[]')
              from (select y.item, min(y.at) as at
                      from jsonb_array_elements(v_value) with ordinality y(item, at) group by y.item) x);
end
$$;
