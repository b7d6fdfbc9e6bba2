-- A list of capability tokens, of an execution or of a worker: returns it sorted and distinct.
-- Errors: invalid_input (NULL), invalid_capabilities (DETAIL.reason).
create or replace function ff__check_capabilities(p_arg text, p_tokens text[]) returns text[]
language plpgsql stable
as $$
declare
    v_reason text;
    v_tokens text[];
begin
    if p_tokens is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif cardinality(p_tokens) = 0 then
        return '{}'::text[];
    end if;
    select case
               when bool_or(t.token is null) then 'null_token'
               when bool_or(t.token = '') then 'empty_token'
               when bool_or(t.token like '%,%') then 'comma'
               when bool_or(t.token ~ E'[\\x01-\\x20\\x7f]') then 'space_or_control_character'
           end,
           array_agg(distinct t.token collate "C" order by t.token collate "C")
      into v_reason, v_tokens
      from unnest(p_tokens) t(token);
    if v_reason is null and cardinality(v_tokens) > 256 then
        v_reason := 'too_many_tokens';
    elsif v_reason is null and octet_length(array_to_string(v_tokens, ',')) > 4096 then
        v_reason := 'too_long';
    end if;
    if v_reason is not null then
        perform ff__raise('invalid_capabilities', format('%s is not a list of capabilities: %s', p_arg, v_reason),
                          jsonb_build_object('arg', p_arg, 'reason', v_reason));
    end if;
    return v_tokens;
end
$$;
