create or replace function ff_check_invariants(p_limit int default 100)
returns table (invariant text, subject text, detail text)
language plpgsql stable security definer
as $$
begin
    perform ff__check_limit(p_limit, 100000);
    return query
        select v.invariant, v.subject, v.detail from ff__invariants_lifecycle() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_events() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_budgets() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_streams() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_suspension() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_flows() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_steps() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_schedules() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_maintenance() v
        union all
        select v.invariant, v.subject, v.detail from ff__invariants_admission() v
        limit p_limit;
end
$$;

comment on function ff_check_invariants(int) is
$$Looks for rows that must not exist. No rows: the database is sound. Each row names the broken rule, what breaks it and how.
Reads whole tables; takes no locks. Sees one moment only inside a REPEATABLE READ transaction.

Errors: invalid_input$$;
