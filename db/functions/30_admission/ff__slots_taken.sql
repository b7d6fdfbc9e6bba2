-- How many slots of a policy are taken: executions that run under it, and live reservations of others. A lease that ran
-- out has no slot any more; but a renewal of it may be under way, so with p_take, under the policy's lock, it counts
-- until its row can be locked (never waits).
create or replace function ff__slots_taken(p_quota_policy_id text, p_now_ms bigint, p_take boolean) returns bigint
language plpgsql volatile
as $$
declare
    v_live bigint;
    v_lapsed bigint;
begin
    select count(*) filter (where c.lease_expires_at_ms > p_now_ms),
           count(*) filter (where c.lease_expires_at_ms <= p_now_ms)
      into v_live, v_lapsed
      from ff_execution c
     where c.limited and c.terminal_at_ms is null and c.state = 'leased'
       and coalesce(c.blocked_budget_id, c.quota_policy_id, '') = p_quota_policy_id;
    if v_lapsed > 0 and p_take then
        v_live := v_live + v_lapsed - (
            select count(*)
              from (select from ff_execution c
                     where c.limited and c.terminal_at_ms is null and c.state = 'leased'
                       and coalesce(c.blocked_budget_id, c.quota_policy_id, '') = p_quota_policy_id
                       and c.lease_expires_at_ms <= p_now_ms
                       for no key update skip locked) x);
    end if;
    return v_live + (
        select count(*) from ff_quota_reservation r
         where r.quota_policy_id = p_quota_policy_id and r.expires_at_ms > p_now_ms
           and not exists (select from ff_execution c
                            where c.execution_id = r.execution_id and c.state = 'leased'
                              and c.quota_policy_id = r.quota_policy_id and c.lease_expires_at_ms > p_now_ms));
end
$$;
