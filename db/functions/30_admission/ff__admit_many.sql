-- ff__admission and ff__park for the executions that a claim of several has locked. Never waits. Adds what denies them to
-- p_policies, p_rated, p_busy and p_budgets (see ff__pick_many). p_admitted are the executions that may start, in the
-- order given. Joins are written as ff__open_many says.
create or replace function ff__admit_many(
    p_ids uuid[], inout p_policies text[], inout p_rated text[], inout p_busy text[], inout p_budgets text[],
    out p_admitted uuid[]
)
language plpgsql volatile
as $$
declare
    v_denied uuid[] := '{}'::uuid[];
    v_budget text;
    a ff_admission;
    r record;
begin
    for r in
        select c.budget_ids, array_agg(c.execution_id order by u.n) as ids
          from unnest(p_ids) with ordinality u(id, n) join ff_exec_core c on c.execution_id = any (array[u.id])
         where c.budget_ids is not null group by c.budget_ids
    loop
        v_budget := ff__budget_block(r.budget_ids);
        if v_budget is not null then
            v_denied := v_denied || r.ids;
            p_budgets := p_budgets || v_budget;
            a := null;
            a.admitted := '{}'::uuid[];
            a.outcome := 'budget_exceeded';
            a.budget_id := v_budget;
            a.now_ms := ff__now_ms();
            perform ff__park(ff__open(r.ids[1]), a);
        end if;
    end loop;
    for r in
        select c.quota_policy_id, array_agg(c.execution_id order by u.n) as ids,
               array_agg(case when c.lifecycle_phase = 'runnable' and c.attempt_state = 'attempt_interrupted'
                              then c.current_attempt_index else c.total_attempt_count end order by u.n) as attempts,
               array_agg(c.lifecycle_phase = 'runnable' and c.attempt_state <> 'attempt_interrupted' order by u.n)
                   as rated
          from unnest(p_ids) with ordinality u(id, n) join ff_exec_core c on c.execution_id = any (array[u.id])
         where c.quota_policy_id is not null and u.id <> all (v_denied)
         group by c.quota_policy_id order by c.quota_policy_id
    loop
        a := ff__admit(r.quota_policy_id, r.ids, r.attempts, r.rated, null, false);
        if a.outcome = 'busy' then
            p_busy := p_busy || r.quota_policy_id;
            v_denied := v_denied || r.ids;
        elsif a.outcome not in ('admitted', 'already_admitted') then
            if a.outcome = 'rate_exceeded' then
                p_rated := p_rated || r.quota_policy_id;
            else
                p_policies := p_policies || r.quota_policy_id;
            end if;
            r.ids := array(select u.id from unnest(r.ids) with ordinality u(id, n)
                            where u.id <> all (a.admitted) order by u.n);
            v_denied := v_denied || r.ids;
            perform ff__park(ff__open(r.ids[1]), a);
        end if;
    end loop;
    p_admitted := array(select u.id from unnest(p_ids) with ordinality u(id, n)
                         where u.id <> all (v_denied) order by u.n);
    delete from ff_quota_reservation v
     using ff_exec_core c
     where c.execution_id = any (p_admitted) and v.execution_id = c.execution_id
       and v.quota_policy_id = c.quota_policy_id;
end
$$;
