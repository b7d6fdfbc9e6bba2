-- Locks: executions, without waiting. Safe to run concurrently.
create or replace function ff_sweep_waitpoints(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    open v_scan for
        select w.waitpoint_id::text from ff_waitpoint w
         where w.state = 'pending' and w.expires_at_ms <= v_now
         order by w.expires_at_ms;
    select s.* into processed, errors, more from ff__sweep('sweep_waitpoints', p_limit, v_scan) s;
end
$$;

comment on function ff_sweep_waitpoints(int) is
$$Expires pending waitpoints whose time is over and that no suspension has bound. Oldest first, at most p_limit.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
