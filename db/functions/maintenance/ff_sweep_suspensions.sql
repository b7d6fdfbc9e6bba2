-- Locks: executions, and the flows of those that end, without waiting. Safe to run concurrently.
create or replace function ff_sweep_suspensions(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    open v_scan for
        select x.execution_id::text from ff_suspension x
         where x.closed_at_ms is null and x.timeout_at_ms <= v_now
         order by x.timeout_at_ms;
    select s.* into processed, errors, more from ff__sweep('sweep_suspensions', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_suspensions(int) is
$$Applies the timeouts of suspensions that have passed, as ff_expire_suspension does: the execution fails, is cancelled,
expires, resumes with a timeout signal, or is escalated to an operator. Oldest first, at most p_limit.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
