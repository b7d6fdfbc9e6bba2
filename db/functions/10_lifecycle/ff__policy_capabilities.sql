-- The required_capabilities inside a policy, as an array. Errors: invalid_capabilities.
create or replace function ff__policy_capabilities(p_policy jsonb) returns text[]
language plpgsql stable
as $$
declare
    v_tokens jsonb := p_policy #> '{routing_requirements,required_capabilities}';
begin
    if v_tokens is null then
        return '{}'::text[];
    elsif jsonb_typeof(v_tokens) <> 'array'
          or exists (select from jsonb_array_elements(v_tokens) x(item) where jsonb_typeof(x.item) <> 'string') then
        perform ff__raise('invalid_capabilities', 'required_capabilities of the policy must be an array of strings',
                          '{"arg": "p_policy", "reason": "wrong_type",
                            "path": "routing_requirements.required_capabilities"}');
    end if;
    return array(select x.item from jsonb_array_elements_text(v_tokens) x(item));
end
$$;
