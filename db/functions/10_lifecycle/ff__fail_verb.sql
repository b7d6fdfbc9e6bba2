-- ff_fail and ff_fail_execution: checks, fence or override, the failure body. Returns as ff__fail, with replayed.
create or replace function ff__fail_verb(
    p_fence ff_fence, p_reason text, p_classification text, p_category text, p_retry_after_ms bigint,
    p_override boolean default false
) returns jsonb
language plpgsql volatile
as $$
declare
    e ff_exec;
begin
    if p_classification is null
       or p_classification not in ('transient', 'permanent', 'infra_crash', 'timeout', 'cancelled') then
        perform ff__invalid('p_classification', 'must be transient, permanent, infra_crash, timeout or cancelled');
    elsif p_category is not null then
        perform ff__check_text('p_category', p_category, 1, 256);
    end if;
    if p_retry_after_ms not between 0 and 2592000000 then
        perform ff__invalid('p_retry_after_ms', 'must be between 0 and 2592000000',
                            jsonb_build_object('value', p_retry_after_ms));
    end if;
    if p_override then
        e := ff__override(p_fence.wire_id, p_fence.attempt_index, 'fail');
    else
        e := ff__fence(p_fence, 'fail');
    end if;
    if e.execution_id is null then
        return (ff__recorded_release(p_fence, 'fail')).release_detail || '{"replayed": true}';
    end if;
    return ff__fail(e, case when p_override then 'override' else 'fail' end, left(coalesce(p_reason, ''), 4096),
                    p_classification, coalesce(p_category, p_classification), p_retry_after_ms => p_retry_after_ms) || '{"replayed": false}';
end
$$;
