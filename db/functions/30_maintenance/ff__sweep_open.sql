-- Begins a run of a step: tries again those of its failed rows whose time has come (a quarter of the limit at most), and
-- says from where and for how many more to look. Errors: invalid_input.
create or replace function ff__sweep_open(
    p_name text, p_limit int, p_retry boolean default true, p_retention_ms bigint default null,
    p_retention_failed_ms bigint default null
) returns ff_sweep
language plpgsql volatile
as $$
declare
    b ff_sweep;
begin
    perform ff__check_limit(p_limit, 100000);
    b.name := p_name;
    b.now_ms := ff__now_ms();
    b.retention_ms := p_retention_ms;
    b.retention_failed_ms := p_retention_failed_ms;
    b.from_ms := 0;
    b.room := p_limit;
    b.full_ := false;
    b.retried_full := false;
    b.seen := '{}';
    b.passes := 0;
    b.processed := 0;
    b.errors := 0;
    b.moved := 0;
    b.putting_off := exists (select from ff_reconciler_error x where x.name = p_name and x.row_key <> '');
    if b.putting_off and p_retry and p_limit > 0 then
        b.retrying := true;
        b.keys := array(
            select x.row_key from ff_reconciler_error x
             where x.name = p_name and x.next_retry_at_ms <= b.now_ms and x.row_key <> ''
             order by x.next_retry_at_ms limit greatest(1, p_limit / 4));
        b.retried_full := cardinality(b.keys) = greatest(1, p_limit / 4);
        b := ff__sweep_rows(b);
        b.room := p_limit - b.processed;
        b.from_ms := coalesce((select r.resume_from_ms from ff_reconciler r
                                where r.name = p_name and r.rewind_at_ms > b.now_ms
                                  and r.rewind_at_ms <= b.now_ms + 30000), 0);
    end if;
    b.retrying := false;
    b.full_ := b.retried_full;
    b.again := b.room > 0;
    b.busy_ms := null;
    b.keys := null;
    b.due_ms := null;
    return b;
end
$$;
