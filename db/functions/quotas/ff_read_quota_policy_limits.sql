create or replace function ff_read_quota_policy_limits(p_quota_policy_id text)
returns table (
    window_seconds bigint, max_requests_per_window bigint, max_concurrent bigint, jitter_ms bigint,
    active_concurrency bigint, window_count bigint, is_unlimited boolean
)
language plpgsql volatile security definer rows 1
as $$
declare
    v_now bigint := ff__now_ms();
begin
    if p_quota_policy_id is null then
        perform ff__invalid('p_quota_policy_id', 'must not be null');
    end if;
    return query
        select q.window_seconds, q.max_requests_per_window, q.max_concurrent, q.jitter_ms,
               ff__slots_taken(q.quota_policy_id, v_now, false),
               ff__window_count(q.quota_policy_id, q.window_seconds, v_now),
               q.max_requests_per_window = 0 and q.max_concurrent = 0
          from ff_quota_policy q where q.quota_policy_id = p_quota_policy_id;
end
$$;

comment on function ff_read_quota_policy_limits(text) is
$$The limits of a quota policy and their usage: active_concurrency counts running executions and reserved slots,
window_count the starts in its window. No row: no such policy.

Rows: at most one
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
