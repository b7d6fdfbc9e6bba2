-- Locks: the policy (waits for it), parked executions (without waiting). Repeatable.
create or replace function ff_update_quota_policy(
    p_quota_policy_id text,
    p_window_seconds bigint default null,
    p_max_requests_per_window bigint default null,
    p_max_concurrent bigint default null,
    p_jitter_ms bigint default null,
    out outcome text,
    out released int
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid;
    q ff_quota_policy;
    n ff_quota_policy;
begin
    perform ff__check_policy_id('p_quota_policy_id', p_quota_policy_id);
    select x.* into q from ff_quota_policy x where x.quota_policy_id = p_quota_policy_id for update;
    if not found then
        perform ff__raise_no_quota_policy(p_quota_policy_id);
    end if;
    n := q;
    n.window_seconds := coalesce(p_window_seconds, q.window_seconds);
    n.max_requests_per_window := coalesce(p_max_requests_per_window, q.max_requests_per_window);
    n.max_concurrent := coalesce(p_max_concurrent, q.max_concurrent);
    n.jitter_ms := coalesce(p_jitter_ms, q.jitter_ms);
    perform ff__check_quota_spec(n.window_seconds, n.max_requests_per_window, n.max_concurrent, n.jitter_ms);
    released := 0;
    outcome := case when n = q then 'unchanged' else 'updated' end;
    if outcome = 'updated' then
        update ff_quota_policy x
           set window_seconds = n.window_seconds, max_requests_per_window = n.max_requests_per_window,
               max_concurrent = n.max_concurrent, jitter_ms = n.jitter_ms, updated_at_ms = ff__now_ms()
         where x.quota_policy_id = p_quota_policy_id;
        -- Regardless of the time set under the old limits.
        foreach v_id in array ff__lock_unparkable(p_quota_policy_id, false, null, null, 10000) loop
            begin
                released := released + ff__unpark(ff__try_open(v_id), false)::int;
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                perform ff__record_sweep_error('sweep_admissions', v_id::text, sqlstate, sqlerrm);
            end;
        end loop;
    end if;
end
$$;

comment on function ff_update_quota_policy(text, bigint, bigint, bigint, bigint) is
$$Changes the limits of a quota policy; NULL keeps a limit. Executions that wait for it are unparked as far as the new
limits have room (up to 10 000; ff_sweep_admissions unparks the rest). Lower limits do not interrupt running attempts.

Outcomes: outcome = updated | unchanged
Errors: invalid_input, invalid_quota_spec, quota_policy_not_found$$;
-- grant: ff_operator, ff_admin
