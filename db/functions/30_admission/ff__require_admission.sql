-- ff__admission for a claim or grant of one execution: says no with an error, and parks nothing. Returns the time after
-- the last lock. Errors: budget_exceeded, rate_limit_exceeded, concurrency_limit_exceeded (DETAIL retry_after_ms).
create or replace function ff__require_admission(e ff_exec, p_hold_ms bigint) returns bigint
language plpgsql volatile
as $$
declare
    v_id text := ff__wire_id(e.partition_key, e.execution_id);
    a ff_admission := ff__admission(e, p_hold_ms);
begin
    if a.admitted <> '{}' then
        return a.now_ms;
    elsif a.outcome = 'budget_exceeded' then
        perform ff__raise('budget_exceeded', format('budget %s of execution %s is used up', a.budget_id, v_id),
                          jsonb_build_object('execution_id', v_id, 'budget_id', a.budget_id,
                                             'retry_after_ms', a.retry_after_ms));
    elsif a.outcome = 'rate_exceeded' then
        perform ff__raise('rate_limit_exceeded', format('quota policy %s allows no more starts now', a.quota_policy_id),
                          jsonb_build_object('execution_id', v_id, 'quota_policy_id', a.quota_policy_id,
                                             'retry_after_ms', a.retry_after_ms));
    end if;
    perform ff__raise('concurrency_limit_exceeded',
                      format(case a.outcome when 'busy' then 'quota policy %s is locked by another transaction'
                                            else 'quota policy %s has no free slot' end, a.quota_policy_id),
                      jsonb_build_object('execution_id', v_id, 'quota_policy_id', a.quota_policy_id,
                                         'retry_after_ms', a.retry_after_ms));
    return null;
end
$$;
