-- Frees the slots and reservations of limited executions that left their leases (p_leased) or ended (p_ended), and
-- unparks as many peers per policy. A reservation under a policy other than the execution's own lasts until the end.
create or replace function ff__free_slots(p_ids uuid[], p_now_ms bigint, p_leased boolean, p_ended boolean) returns void
language plpgsql volatile
as $$
declare
    r record;
begin
    for r in
        with freed as (
            delete from ff_quota_reservation v
             where v.execution_id = any (p_ids)
               and (p_ended or v.quota_policy_id = (select c.quota_policy_id from ff_execution c
                                                     where c.execution_id = v.execution_id))
            returning v.quota_policy_id, v.execution_id, v.expires_at_ms
        )
        select x.quota_policy_id, count(*)::int as slots
          from (select f.quota_policy_id, f.execution_id from freed f where f.expires_at_ms > p_now_ms
                 union
                select c.quota_policy_id, c.execution_id from ff_execution c
                 where c.execution_id = any (p_ids) and c.quota_policy_id is not null and p_leased) x
         group by x.quota_policy_id
    loop
        perform ff__unpark_peers(r.quota_policy_id, r.slots);
    end loop;
end
$$;

-- ff__free_slots for one execution; e is the row before the change.
create or replace function ff__free_slot(e ff_exec, p_ended boolean) returns void
language plpgsql volatile
as $$
begin
    perform ff__free_slots(array[e.execution_id], e.now_ms, e.ownership_state = 'leased', p_ended);
end
$$;

-- Settles a locked, parked execution; if another of its budgets blocks it, it waits for that budget instead. False if
-- it does not exist, is not parked, is not due (p_timed), or is still denied for the same reason.
create or replace function ff__unpark(e ff_exec, p_timed boolean default true) returns boolean
language plpgsql volatile
as $$
declare
    v_next text;
    c ff_execution;
begin
    select x.* into c from ff_execution x where x.execution_id = e.execution_id;
    if (e.eligibility_state in ('blocked_by_quota', 'blocked_by_budget')) is not true
       or p_timed and c.not_before_ms > e.now_ms then
        return false;
    elsif e.eligibility_state = 'blocked_by_budget' then
        v_next := ff__budget_block(c.budget_ids);
        if v_next = c.blocked_budget_id then
            return false;
        elsif v_next is not null then
            update ff_execution x set blocked_budget_id = v_next, blocking_detail = v_next
             where x.execution_id = e.execution_id;
            return true;
        end if;
    end if;
    perform ff__settle(e);
    return true;
end
$$;

-- Settles as many parked executions as slots of a policy became free, in the order of rank. Skips rows that maintenance
-- has backed off after a failure, and locked rows, up to a hundred of each state (ff_sweep_admissions finds the rest).
-- Never waits.
create or replace function ff__unpark_peers(p_quota_policy_id text, p_slots int) returns void
language plpgsql volatile
as $$
declare
    v_ids uuid[];
    v_id uuid;
    v_failed boolean := exists (select from ff_reconciler_error x
                                 where x.name = 'sweep_admissions' and x.row_key <> '');
    e ff_exec;
begin
    v_ids := array(
        select x.execution_id
          from ff_state_word w
         cross join lateral (
               select y.execution_id
                 from ff_execution y
                where y.limited and y.terminal_at_ms is null and y.state = w.state
                  and coalesce(y.blocked_budget_id, y.quota_policy_id, '') = p_quota_policy_id
                  and (y.not_before_ms is not null)::int = 0
                  and not (v_failed and ff__is_backed_off('sweep_admissions', y.execution_id::text))
                order by y.rank limit p_slots + 100) x
         where w.place = 'quota');
    if v_ids = '{}' then
        return;
    end if;
    for v_id in
        select c.execution_id
          from unnest(v_ids) u(id) join ff_execution c on c.execution_id = any (array[u.id])
           and c.state in ('quota', 'quota_retry', 'quota_replay', 'quota_resume')
           and c.quota_policy_id = p_quota_policy_id
         order by c.rank limit p_slots for no key update of c skip locked
    loop
        e := ff__open(v_id);
        if e.flow_id is not null and e.open_resources then
            -- Settling may end it and its stream.
            e := ff__try_open(v_id);
            continue when e.execution_id is null;
        end if;
        perform ff__settle(e);
    end loop;
end
$$;
