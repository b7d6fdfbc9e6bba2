-- Ends a run of a step: while rows of the step are put off it notes how far the scan has come, so that the next one begins
-- there; from the beginning again every 30 seconds. more: the last batch was full, and the next one will not be the same.
create or replace function ff__sweep_close(b ff_sweep, out processed int, out errors int, out more boolean)
language plpgsql volatile
as $$
begin
    processed := b.processed;
    errors := b.errors;
    more := b.full_ and b.moved + errors > 0;
    if b.room > 0 and (b.putting_off or errors > 0) and ff__sweep_guard(b.name) then
        -- A second behind the clock, for those who have written and not yet committed.
        update ff_reconciler r
           set resume_from_ms = greatest(b.from_ms, least(b.busy_ms, b.last_ms, b.now_ms - 1000)),
               rewind_at_ms = case when b.from_ms = 0 then b.now_ms + 30000 else r.rewind_at_ms end
         where r.name = (select x.name from ff_reconciler x where x.name = b.name for update skip locked);
    end if;
end
$$;
