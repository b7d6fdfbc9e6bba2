-- Processes the rows of a batch: all in one block; when that fails, each half in a block of its own, and so on down to the
-- row that cannot be processed, which is put off. So every row is undone and put off alone, and a batch in which nothing
-- fails costs one subtransaction.
create or replace function ff__sweep_rows(b ff_sweep) returns ff_sweep
language plpgsql volatile
as $$
declare
    v_keys text[] := b.keys;
    v_due bigint[] := b.due_ms;
    v_count int := coalesce(cardinality(b.keys), 0);
    v_half int := v_count / 2;
    v_done int;
    v_free text[];
    v_moved int;
    v_busy bigint;
begin
    if v_count = 0 then
        return b;
    end if;
    begin
        select s.done, s.free, s.moved, s.busy_ms into v_done, v_free, v_moved, v_busy from ff__sweep_set(b, v_keys, v_due) s;
        if b.retrying then
            perform ff__sweep_healed(b.name, v_free);
        end if;
        b.processed := b.processed + v_done;
        b.moved := b.moved + v_moved;
        b.busy_ms := least(b.busy_ms, v_busy);
        return b;
    exception when others then
        if ff__stops_sweep(sqlstate) then
            raise;
        elsif v_count = 1 then
            perform ff__sweep_failed(b.name, v_keys[1], sqlstate, sqlerrm);
            b.errors := b.errors + 1;
            return b;
        end if;
    end;
    b.keys := v_keys[:v_half];
    b.due_ms := v_due[:v_half];
    b := ff__sweep_rows(b);
    b.keys := v_keys[v_half + 1:];
    b.due_ms := v_due[v_half + 1:];
    return ff__sweep_rows(b);
end
$$;
