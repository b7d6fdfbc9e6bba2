-- Locks: flows and executions, without waiting. Safe to run many at once.
create or replace function ff_drain_sibling_cancels(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
    d record;
begin
    open v_scan for
        select x.target_eid || ' ' || x.downstream_eid from ff_cancel_dispatch_outbox x
         where x.enqueued_at_ms <= v_now order by x.enqueued_at_ms;
    select s.* into processed, errors, more from ff__sweep('drain_sibling_cancels', p_limit, v_scan) s;
    d := ff__drain_children(p_limit - processed - errors);
    processed := processed + d.processed;
    errors := errors + d.errors;
    more := more or p_limit > 0 and d.more;
end
$$;

comment on function ff_drain_sibling_cancels(int) is
$$Cancels members that a decided group no longer needs and that were locked when it was decided. Cancels the children of
executions that ended other than by success, and replays the children of replayed executions, if there were too many,
they were locked, or they were created at the same time. Also counts checks of parents that need no change.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
