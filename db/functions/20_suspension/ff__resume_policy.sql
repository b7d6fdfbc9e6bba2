-- The policy of a suspension with its defaults. Errors: invalid_input (NULL), invalid_resume_policy (DETAIL.path).
create or replace function ff__resume_policy(p_policy jsonb) returns jsonb
language plpgsql stable
as $$
declare
    c_default constant jsonb := jsonb '{"resume_target": "runnable", "resume_delay_ms": 0, "close_waitpoint_on_resume": true,
                                  "consume_matched_signals": true, "retain_signal_buffer_until_closed": false}';
    v record;
begin
    if p_policy = '{}' then
        return c_default;
    elsif p_policy is null then
        perform ff__invalid('p_policy', 'must not be null');
    elsif jsonb_typeof(p_policy) <> 'object' then
        perform ff__raise('invalid_resume_policy', 'the policy of a suspension is not an object',
                          jsonb_build_object('path', '', 'reason', 'wrong_type'));
    end if;
    for v in select x.key, x.value from jsonb_each(p_policy) x loop
        if not c_default ? v.key then
            perform ff__raise('invalid_resume_policy', 'the policy of a suspension has no such key',
                              jsonb_build_object('path', left(v.key, 64), 'reason', 'unknown_key'));
        elsif jsonb_typeof(v.value) <> jsonb_typeof(c_default -> v.key)
              or (v.key = 'resume_target' and v.value <> '"runnable"')
              or (v.key = 'resume_delay_ms'
                  and ((p_policy -> v.key)::numeric not between 0 and 604800000
                       or (p_policy -> v.key)::numeric <> trunc((p_policy -> v.key)::numeric)))
        then
            perform ff__raise('invalid_resume_policy', format('%s has a value that it cannot have', v.key),
                              jsonb_build_object('path', v.key, 'reason', 'wrong_type'));
        end if;
    end loop;
    return c_default || p_policy;
end
$$;
