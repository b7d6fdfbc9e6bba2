-- How many admissions of a policy lie inside its window. In their order, so that the index of times is read and not all
-- that the policy ever admitted.
create or replace function ff__window_count(p_quota_policy_id text, p_window_seconds bigint, p_now_ms bigint)
returns bigint
language plpgsql stable
as $$
begin
    return (select count(*)
              from (select from ff_quota_window w
                     where w.quota_policy_id = p_quota_policy_id
                       and w.admitted_at_ms > p_now_ms - p_window_seconds * 1000
                     order by w.admitted_at_ms offset 0) x);
end
$$;
