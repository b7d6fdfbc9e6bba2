-- Checks the id of a quota policy or budget: 1 to 200 characters. Errors: invalid_input.
create or replace function ff__check_policy_id(p_arg text, p_value text) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text(p_arg, p_value, 1, 800);
    if length(p_value) > 200 then
        perform ff__invalid(p_arg, 'must have at most 200 characters',
                            jsonb_build_object('characters', length(p_value)));
    end if;
end
$$;

-- Checks the limits of a quota policy: 0 is no limit; starts are counted in a window. Parked executions wait until
-- ff__max_time_ms at most. Errors: invalid_quota_spec.
create or replace function ff__check_quota_spec(
    p_window_seconds bigint, p_max_requests_per_window bigint, p_max_concurrent bigint, p_jitter_ms bigint
) returns void
language plpgsql stable
as $$
declare
    c_max constant bigint := 9007199254740;
    v_longest_ms constant bigint := ff__max_time_ms(ff__now_ms());
    r record;
begin
    for r in
        select x.name, x.value, x.max
          from (values ('window_seconds', p_window_seconds, v_longest_ms / 1000),
                       ('max_requests_per_window', p_max_requests_per_window, c_max),
                       ('max_concurrent', p_max_concurrent, c_max), ('jitter_ms', p_jitter_ms, v_longest_ms))
               x(name, value, max)
         where x.value not between 0 and x.max limit 1
    loop
        perform ff__raise('invalid_quota_spec', format('%s must be between 0 and %s', r.name, r.max),
                          jsonb_build_object('arg', 'p_' || r.name, 'value', r.value));
    end loop;
    if p_max_requests_per_window > 0 and p_window_seconds = 0 then
        perform ff__raise('invalid_quota_spec', 'a number of starts needs a window',
                          jsonb_build_object('arg', 'p_window_seconds', 'value', p_window_seconds));
    end if;
end
$$;

-- Parked executions that can be unparked: under a quota policy as many as it has room for, under a budget (p_budget)
-- all if it no longer blocks; p_limit at most, in the order of rank; paused attempts need a slot only. p_lane_id: on
-- that lane only. p_now_ms NULL: whether or not their time has come. Skips rows that are backed off after a failure.
-- Locks them, without waiting.
create or replace function ff__lock_unparkable(
    p_key text, p_budget boolean, p_lane_id text, p_now_ms bigint, p_limit int
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_place text := case when p_budget then 'budget' else 'quota' end;
    v_slots bigint;
    v_starts bigint;
    v_bound int;
    v_seen bigint;
    v_ids uuid[];
    v_failed boolean := exists (select from ff_reconciler_error x
                                 where x.name = 'sweep_admissions' and x.row_key <> '');
begin
    if not p_budget then
        select x.slots, x.starts into v_slots, v_starts
          from ff__free_capacity(p_key, coalesce(p_now_ms, ff__now_ms())) x;
    elsif ff__budget_block(array[p_key]) is not null then
        return '{}'::uuid[];
    end if;
    p_limit := least(p_limit, v_slots, nullif(v_starts, 0));
    if p_limit = 0 then
        return '{}'::uuid[];
    end if;
    -- The first p_limit + 1000 rows; all rows if none of these qualifies.
    v_bound := p_limit + 1000;
    loop
        select count(*),
               array_agg(x.execution_id order by x.rank)
                   filter (where (p_lane_id is null or x.lane_id = p_lane_id)
                             and (p_now_ms is null or x.not_before_ms is null or x.not_before_ms <= p_now_ms)
                             and (v_starts is null or v_starts > 0 or x.state = 'quota_resume')
                             and not (v_failed and ff__is_backed_off('sweep_admissions', x.execution_id::text)))
          into v_seen, v_ids
          from ff_state_word w cross join (values (0), (1)) t(timed)
         cross join lateral (
               select y.execution_id, y.rank, y.lane_id, y.state, y.not_before_ms
                 from ff_execution y
                where y.limited and y.terminal_at_ms is null and y.state = w.state
                  and coalesce(y.blocked_budget_id, y.quota_policy_id, '') = p_key
                  and (y.not_before_ms is not null)::int = t.timed
                order by y.rank limit v_bound) x
         where w.place = v_place;
        v_ids := array(
            select c.execution_id
              from unnest(v_ids) u(id) join ff_execution c on c.execution_id = any (array[u.id])
               and case when p_budget then c.state in ('budget', 'budget_retry', 'budget_replay', 'budget_resume')
                        else c.state in ('quota', 'quota_retry', 'quota_replay', 'quota_resume') end
               and coalesce(c.blocked_budget_id, c.quota_policy_id, '') = p_key
             order by c.rank limit p_limit for no key update of c skip locked);
        exit when v_ids <> '{}' or v_bound is null or v_seen < v_bound or v_starts = 0;
        v_bound := null;
    end loop;
    return v_ids;
end
$$;

-- The remaining capacity of a policy: free slots, and starts in its window. NULL: no limit.
create or replace function ff__free_capacity(
    p_quota_policy_id text, p_now_ms bigint, out slots bigint, out starts bigint)
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
