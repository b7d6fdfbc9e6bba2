-- Admits executions under a policy, those that come first first (see ff__judge), and writes it down. If any may start,
-- the policy stays locked until the transaction ends, so that the next transaction that asks sees what runs; if none may,
-- its lock is dropped. Without p_wait, as in every claim, a policy that another transaction has locked answers `busy` and
-- admits none. A policy that is gone limits nothing.
-- The row is written at each admission: a caller at REPEATABLE READ that asked at the same time, and cannot see what was
-- admitted since its snapshot, then fails to serialize instead of admitting one too many.
create or replace function ff__admit(
    p_quota_policy_id text, p_ids uuid[], p_attempts int[], p_rated boolean[], p_hold_ms bigint,
    p_wait boolean
) returns ff_admission
language plpgsql volatile
as $$
declare
    q ff_quota_policy;
    a ff_admission;
begin
    select x.* into q from ff_quota_policy x where x.quota_policy_id = p_quota_policy_id;
    if not found then
        a.admitted := p_ids;
        a.outcome := 'admitted';
        a.now_ms := ff__now_ms();
        return a;
    elsif q.max_requests_per_window = 0 and q.max_concurrent = 0 then
        return ff__judge(q, p_ids, p_attempts, p_rated, p_hold_ms, true);
    end if;
    -- If others are parked the answer is likely to be no, which needs no lock.
    if exists (select from ff_execution c
                where c.limited and c.terminal_at_ms is null
                  and c.state in ('quota', 'quota_retry', 'quota_replay', 'quota_resume')
                  and coalesce(c.blocked_budget_id, c.quota_policy_id, '') = p_quota_policy_id)
    then
        a := ff__judge(q, p_ids, p_attempts, p_rated, p_hold_ms, false);
        if a.admitted = '{}' then
            return a;
        end if;
    end if;
    begin
        if p_wait then
            select x.* into q from ff_quota_policy x where x.quota_policy_id = p_quota_policy_id for update;
        else
            select x.* into q from ff_quota_policy x where x.quota_policy_id = p_quota_policy_id for update skip locked;
        end if;
        if not found then
            a.admitted := '{}'::uuid[];
            a.outcome := 'busy';
            a.quota_policy_id := p_quota_policy_id;
            a.now_ms := ff__now_ms();
            return a;
        end if;
        a := ff__judge(q, p_ids, p_attempts, p_rated, p_hold_ms, true);
        if a.admitted = '{}' then
            perform ff__raise('concurrency_limit_exceeded', 'undoes the block and with it the lock');
        end if;
        update ff_quota_policy x set updated_at_ms = x.updated_at_ms where x.quota_policy_id = p_quota_policy_id;
    exception when sqlstate 'WF210' then
        null;
    end;
    return a;
end
$$;
