-- Processes the rows that a scan of a step has found. again: the batch was full and some of it was busy, so that others may
-- stand behind what somebody holds; the step then scans once more, past what it has seen, for as many as are left of its
-- limit. Ten times at most. (A scan leaves out what was seen by NOT IN, which is hashed; <> ALL would compare each with all.)
create or replace function ff__sweep_batch(b ff_sweep) returns ff_sweep
language plpgsql volatile
as $$
declare
    v_keys text[] := b.keys;
    v_count int := coalesce(cardinality(b.keys), 0);
    v_before int := b.moved + b.errors;
    v_free int;
begin
    b.again := false;
    b.full_ := b.retried_full or v_count >= b.room;
    b.last_ms := case when v_count >= b.room then b.due_ms[v_count] end;
    if v_count = 0 then
        return b;
    end if;
    b := ff__sweep_rows(b);
    v_free := b.moved + b.errors - v_before;
    b.seen := b.seen || v_keys;
    b.passes := b.passes + 1;
    b.again := v_count >= b.room and v_free < v_count and v_free < b.room and b.passes < 10;
    if b.again then
        b.room := b.room - v_free;
        b.putting_off := b.putting_off or b.errors > 0;
    end if;
    return b;
end
$$;
