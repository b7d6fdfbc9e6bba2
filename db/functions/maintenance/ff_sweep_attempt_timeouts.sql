-- Locks: executions, and the flows of those that end, without waiting. Safe to run concurrently.
create or replace function ff_sweep_attempt_timeouts(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    open v_scan for
        select c.execution_id::text from ff_execution c
         where (c.deadline_at_ms is not null or c.attempt_timeout_at_ms is not null) and c.terminal_at_ms is null
           and least(c.deadline_at_ms, c.attempt_timeout_at_ms) <= v_now
           and c.state in ('leased', 'lease_expired', 'lease_revoked') and c.attempt_timeout_at_ms <= v_now
         order by least(c.deadline_at_ms, c.attempt_timeout_at_ms);
    select s.* into processed, errors, more from ff__sweep('sweep_attempt_timeouts', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_attempt_timeouts(int) is
$$Ends attempts that have exceeded their timeout, as failures of class timeout: the execution is retried if the policy
has a retry left, else it ends expired. Oldest first, at most p_limit. A claim that finds such an execution does the
same.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
