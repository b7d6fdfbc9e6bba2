create or replace function ff_check_invariants(p_limit int default 100)
returns table (invariant text, subject text, detail text)
language plpgsql stable security definer
as $$
begin
    perform ff__check_limit(p_limit, 100000);
    return query
        select v.invariant, v.subject, v.detail from ff__invariants_executions() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_events() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_budgets() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_streams() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_suspensions() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_flows() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_steps() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_schedules() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_maintenance() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_quotas() v
        limit p_limit;
end
$$;

comment on function ff_check_invariants(int) is
$$Returns violations of the engine's invariants; no rows: none found. Each row names the broken rule, the subject and a
detail. Reads whole tables; takes no locks. Sees one snapshot only inside a REPEATABLE READ transaction.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
