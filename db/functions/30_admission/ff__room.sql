-- What a policy still has to give: free slots, and starts in its window. NULL: no limit.
create or replace function ff__room(p_quota_policy_id text, p_now_ms bigint, out slots bigint, out starts bigint)
language plpgsql volatile
as $$
declare
    q ff_quota_policy;
begin
    select x.* into q from ff_quota_policy x where x.quota_policy_id = p_quota_policy_id;
    if q.max_concurrent > 0 then
        slots := greatest(0, q.max_concurrent - ff__slots_taken(p_quota_policy_id, p_now_ms, false));
    end if;
    if q.max_requests_per_window > 0 then
        starts := greatest(0, q.max_requests_per_window
                              - ff__window_count(p_quota_policy_id, q.window_seconds, p_now_ms));
    end if;
end
$$;
