-- Asks admission for the executions that a claim has locked, and parks those that may not start. p_hold_ms: reserves
-- their slots for that long, instead of for the leases that are about to be made. Adds what denies them to
-- p_policies, p_rated (starts are what is missing), p_busy and p_budgets (see ff__pick). p_admitted: those that may
-- start, in the order given. Never waits.
create or replace function ff__admit_many(
    p_ids uuid[], p_hold_ms bigint, inout p_policies text[], inout p_rated text[], inout p_busy text[],
    inout p_budgets text[], out p_admitted uuid[]
)
language plpgsql volatile
as $$
declare
    v_denied uuid[] := '{}'::uuid[];
    a ff_admission;
begin
    for a in select x.* from ff__denials(p_ids, p_hold_ms) x loop
        v_denied := v_denied || a.denied;
        case a.outcome
            when 'busy' then
                p_busy := p_busy || a.quota_policy_id;
                continue;
            when 'budget_exceeded' then
                p_budgets := p_budgets || a.budget_id;
            when 'rate_exceeded' then
                p_rated := p_rated || a.quota_policy_id;
            else
                p_policies := p_policies || a.quota_policy_id;
        end case;
        perform ff__park(ff__open(a.denied[1]), a);
    end loop;
    p_admitted := array(select u.id from unnest(p_ids) with ordinality u(id, n)
                         where u.id <> all (v_denied) order by u.n);
end
$$;

-- ff__admit_many for a claim or grant of one execution: denies with an error, and parks nothing. Returns the time after
-- the last lock. Errors: budget_exceeded, rate_limit_exceeded, concurrency_limit_exceeded (DETAIL retry_after_ms).
create or replace function ff__require_admission(e ff_exec, p_hold_ms bigint) returns bigint
language plpgsql volatile
as $$
declare
    v_id text := ff__wire_id(e.partition_key, e.execution_id);
    a ff_admission;
begin
    select x.* into a from ff__denials(array[e.execution_id], p_hold_ms) x;
    if not found then
        return ff__now_ms();
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

-- Asks whether executions that are locked and could be claimed may start: their budgets first, unlocked, then their
-- quota policies; those that may are admitted. Returns one row per budget or policy that denies some of them
-- (denied). A paused or crashed attempt is charged a slot, not a start. Never waits. Joins are written as ff__end
-- says.
create or replace function ff__denials(p_ids uuid[], p_hold_ms bigint) returns setof ff_admission
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
               array_agg(case when k.resumed then c.attempt_index else c.total_attempt_count end order by u.n) as attempts,
               array_agg(not k.resumed and c.state not in ('leased', 'lease_expired', 'lease_revoked') order by u.n)
                   as rated
          from unnest(p_ids) with ordinality u(id, n) join ff_execution c on c.execution_id = any (array[u.id])
         cross join lateral (select c.state in ('ready_resume', 'delayed_resume', 'resume_delay_resume')) k(resumed)
         where c.quota_policy_id is not null and u.id <> all (v_denied)
         group by c.quota_policy_id order by c.quota_policy_id
    loop
        a := ff__admit(r.quota_policy_id, r.ids, r.attempts, r.rated, p_hold_ms, false);
        -- A slot that was reserved before is kept for at least as long.
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
