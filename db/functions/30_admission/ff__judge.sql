-- Whether executions may start under a policy, one after the other in the order given: p_attempts are the attempts that
-- would run, p_rated whether they are charged to the window. With p_take, under the policy's lock, it is also written
-- down: window rows, and reservations if p_hold_ms is given. The counts are NULL where the policy has no such limit.
-- What starts is stamped with the time after the count, so that it never seems to have run beside one that made room.
create or replace function ff__judge(
    q ff_quota_policy, p_ids uuid[], p_attempts int[], p_rated boolean[], p_hold_ms bigint, p_take boolean
) returns ff_admission
language plpgsql volatile
as $$
declare
    v_new uuid[] := '{}'::uuid[];
    v_charged uuid[] := '{}'::uuid[];
    v_window_ms bigint := q.window_seconds * 1000;
    v_now bigint := ff__now_ms();
    a ff_admission;
    r record;
begin
    a.quota_policy_id := q.quota_policy_id;
    a.admitted := '{}'::uuid[];
    if q.max_concurrent > 0 then
        a.active_concurrency := ff__slots_taken(q.quota_policy_id, v_now, p_take);
    end if;
    if q.max_requests_per_window > 0 then
        a.window_count := ff__window_count(q.quota_policy_id, q.window_seconds, v_now);
    end if;
    a.now_ms := ff__now_ms();
    for r in
        select u.id,
               -- Not EXISTS, which may be planned as a hash of all that is held, leased or was admitted.
               coalesce((select v.expires_at_ms > v_now from ff_quota_reservation v
                          where v.quota_policy_id = q.quota_policy_id and v.execution_id = u.id), false)
               or coalesce((select c.state = 'leased' and c.quota_policy_id = q.quota_policy_id
                                   and c.lease_expires_at_ms > v_now
                              from ff_execution c where c.execution_id = u.id), false) as held,
               u.rated and not coalesce((
                   select w.admitted_at_ms > v_now - v_window_ms from ff_quota_window w
                    where w.quota_policy_id = q.quota_policy_id and w.execution_id = u.id
                      -- In an order that only the primary key has, so that no plan reads all that was admitted.
                      and w.attempt_index between u.attempt and u.attempt order by w.attempt_index limit 1),
                   false) as charged
          from unnest(p_ids, p_attempts, p_rated) with ordinality u(id, attempt, rated, n)
         order by u.n
    loop
        if not r.held and r.charged and q.max_requests_per_window > 0
           and a.window_count >= q.max_requests_per_window then
            if a.outcome is null then
                a.outcome := 'rate_exceeded';
                -- Those that this call has admitted are the youngest.
                a.retry_after_ms := greatest(1, v_window_ms - v_now + coalesce(
                    (select w.admitted_at_ms from ff_quota_window w
                      where w.quota_policy_id = q.quota_policy_id and w.admitted_at_ms > v_now - v_window_ms
                      order by w.admitted_at_ms offset a.window_count - q.max_requests_per_window limit 1), v_now))
                    + floor(random() * (q.jitter_ms + 1))::bigint;
            end if;
        elsif not r.held and q.max_concurrent > 0 and a.active_concurrency >= q.max_concurrent then
            a.outcome := coalesce(a.outcome, 'concurrency_exceeded');
        else
            a.admitted := a.admitted || r.id;
            if not r.held then
                v_new := v_new || r.id;
                a.active_concurrency := a.active_concurrency + 1;
                if r.charged then
                    v_charged := v_charged || r.id;
                    a.window_count := a.window_count + 1;
                end if;
            end if;
        end if;
    end loop;
    a.outcome := coalesce(a.outcome, case v_new when '{}' then 'already_admitted' else 'admitted' end);
    if p_take and v_charged <> '{}' then
        insert into ff_quota_window (quota_policy_id, execution_id, attempt_index, admitted_at_ms)
        select q.quota_policy_id, u.id, u.attempt, a.now_ms
          from unnest(p_ids, p_attempts) u(id, attempt) where u.id = any (v_charged)
        on conflict on constraint ff_quota_window_pkey do update set admitted_at_ms = excluded.admitted_at_ms;
    end if;
    if p_take and p_hold_ms is not null and v_new <> '{}' then
        insert into ff_quota_reservation (quota_policy_id, execution_id, attempt_index, admitted_at_ms, expires_at_ms)
        select q.quota_policy_id, u.id, u.attempt, a.now_ms, ff__time_after(a.now_ms, p_hold_ms)
          from unnest(p_ids, p_attempts) u(id, attempt) where u.id = any (v_new)
        on conflict on constraint ff_quota_reservation_pkey do update
            set attempt_index = excluded.attempt_index, admitted_at_ms = excluded.admitted_at_ms,
                expires_at_ms = excluded.expires_at_ms;
    end if;
    return a;
end
$$;
