-- Admits executions under a quota policy, in the order given (see ff__evaluate_quota), and records the admissions. If
-- any is admitted, the policy stays locked until the transaction ends, so that the next transaction sees what runs; if
-- none is, the lock is released. Without p_wait, as in every claim, a policy locked by another transaction returns
-- `busy` and admits none. A policy that does not exist limits nothing.
-- Each admission writes the policy row: a concurrent caller at REPEATABLE READ, whose snapshot does not show the
-- admission, then fails to serialize instead of admitting one too many.
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
        return ff__evaluate_quota(q, p_ids, p_attempts, p_rated, p_hold_ms, true);
    end if;
    -- If other executions are parked, denial is likely; evaluate without a lock first.
    if exists (select from ff_execution c
                where c.limited and c.terminal_at_ms is null
                  and c.state in ('quota', 'quota_retry', 'quota_replay', 'quota_resume')
                  and coalesce(c.blocked_budget_id, c.quota_policy_id, '') = p_quota_policy_id)
    then
        a := ff__evaluate_quota(q, p_ids, p_attempts, p_rated, p_hold_ms, false);
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
        a := ff__evaluate_quota(q, p_ids, p_attempts, p_rated, p_hold_ms, true);
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

-- Evaluates which executions may start under a policy, one after the other in the order given. p_attempts: the attempt
-- that would run; p_rated: whether it is charged to the window. With p_take, under the policy's lock, the admissions
-- are also recorded: window rows, and reservations if p_hold_ms is given. A count is NULL if the policy has no such
-- limit. Admissions are stamped with the time after the count, so that they never overlap the execution that freed the
-- slot.
create or replace function ff__evaluate_quota(
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
               -- Not EXISTS: it may be planned as a hash of all reservations, leases or admissions.
               coalesce((select v.expires_at_ms > v_now from ff_quota_reservation v
                          where v.quota_policy_id = q.quota_policy_id and v.execution_id = u.id), false)
               or coalesce((select c.state = 'leased' and c.quota_policy_id = q.quota_policy_id
                                   and c.lease_expires_at_ms > v_now
                              from ff_execution c where c.execution_id = u.id), false) as held,
               u.rated and not coalesce((
                   select w.admitted_at_ms > v_now - v_window_ms from ff_quota_window w
                    where w.quota_policy_id = q.quota_policy_id and w.execution_id = u.id
                      -- This order is only in the primary key, so that no plan reads all admissions.
                      and w.attempt_index between u.attempt and u.attempt order by w.attempt_index limit 1),
                   false) as charged
          from unnest(p_ids, p_attempts, p_rated) with ordinality u(id, attempt, rated, n)
         order by u.n
    loop
        if not r.held and r.charged and q.max_requests_per_window > 0
           and a.window_count >= q.max_requests_per_window then
            if a.outcome is null then
                a.outcome := 'rate_exceeded';
                -- Admissions of this call are the newest.
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

-- Admits locked, claimable executions: checks their budgets first, without locks, then their quota policies. Returns
-- one row per budget or policy that denies some of them (denied). A paused or crashed attempt is charged a slot, not a
-- start. Never waits. Joins are written as in ff__end.
create or replace function ff__check_admissions(p_ids uuid[], p_hold_ms bigint) returns setof ff_admission
language plpgsql volatile
as $$
declare
    v_denied uuid[] := '{}'::uuid[];
    a ff_admission;
    r record;
begin
    for r in
        select c.budget_ids, array_agg(u.id order by u.n) as ids
          from unnest(p_ids) with ordinality u(id, n) join ff_execution c on c.execution_id = any (array[u.id])
         where c.budget_ids is not null group by c.budget_ids
    loop
        a := null;
        a.budget_id := ff__budget_block(r.budget_ids);
        continue when a.budget_id is null;
        a.denied := r.ids;
        a.outcome := 'budget_exceeded';
        a.now_ms := ff__now_ms();
        a.retry_after_ms := (select b.next_reset_at_ms - a.now_ms from ff_budget b
                              where b.budget_id = a.budget_id and b.next_reset_at_ms > a.now_ms);
        v_denied := v_denied || r.ids;
        return next a;
    end loop;
    for r in
        select c.quota_policy_id, array_agg(u.id order by u.n) as ids,
               array_agg(case when k.resumed then c.attempt_index else c.total_attempt_count end order by u.n)
                   as attempts,
               array_agg(not k.resumed and c.state not in ('leased', 'lease_expired', 'lease_revoked') order by u.n)
                   as rated
          from unnest(p_ids) with ordinality u(id, n) join ff_execution c on c.execution_id = any (array[u.id])
         cross join lateral (select c.state in ('ready_resume', 'delayed_resume', 'resume_delay_resume')) k(resumed)
         where c.quota_policy_id is not null and u.id <> all (v_denied)
         group by c.quota_policy_id order by c.quota_policy_id
    loop
        a := ff__admit(r.quota_policy_id, r.ids, r.attempts, r.rated, p_hold_ms, false);
        -- A slot reserved earlier keeps at least this expiry.
        update ff_quota_reservation v set expires_at_ms = a.now_ms + p_hold_ms
         where v.quota_policy_id = r.quota_policy_id and v.execution_id = any (a.admitted)
           and v.expires_at_ms < a.now_ms + p_hold_ms;
        a.denied := array(select u.id from unnest(r.ids) with ordinality u(id, n)
                           where u.id <> all (a.admitted) order by u.n);
        if a.denied <> '{}' then
            return next a;
        end if;
    end loop;
end
$$;

-- The first of these budgets that blocks new work: breached or, in strict mode, with a dimension at its hard limit.
-- NULL if none does; a budget that does not exist blocks nothing. Reads only, without locks.
create or replace function ff__budget_block(p_budget_ids text[]) returns text
language plpgsql stable
as $$
begin
    return (
        select b.budget_id
          from unnest(p_budget_ids) with ordinality x(budget_id, n)
          join ff_budget b on b.budget_id = x.budget_id
         where b.breached
            or b.enforcement_mode = 'strict'
               and exists (select from ff_budget_usage u
                            where u.budget_id = b.budget_id and u.hard_limit > 0 and u.current_value >= u.hard_limit)
         order by x.n limit 1);
end
$$;

-- Counts the taken slots of a policy: executions that run under it, and live reservations of others. An expired lease
-- holds no slot, but may be in the middle of a renewal; with p_take, under the policy's lock, it counts unless its row
-- can be locked (never waits).
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

-- Counts the admissions of a policy inside its window. Ordered, so that the index on times is used instead of reading
-- every admission of the policy.
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
