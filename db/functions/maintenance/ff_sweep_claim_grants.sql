-- Locks: executions, without waiting. Safe to run concurrently.
create or replace function ff_sweep_claim_grants(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    open v_scan for
        select g.execution_id::text from ff_claim_grant g where g.expires_at_ms <= v_now order by g.expires_at_ms;
    select s.* into processed, errors, more from ff__sweep('sweep_claim_grants', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_claim_grants(int) is
$$Deletes grants that expired unused, with the quota slots they held. The execution is claimable by other workers as
soon as the grant expires. Oldest first, at most p_limit.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
