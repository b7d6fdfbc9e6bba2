-- What a step does with the rows that were found, all of them or none: one by one (ff__sweep_row), or, where rows are
-- only deleted, as a set. done: how many were processed; free: the keys of those that nobody else had locked, of a set
-- all; moved: how many of them will not be found again at once; busy_ms: the due time of the first that somebody had.
create or replace function ff__sweep_set(
    b ff_sweep, p_keys text[], p_due_ms bigint[], out done int, out free text[], out moved int, out busy_ms bigint
)
language plpgsql volatile
as $$
declare
    v_key text;
    v_due bigint;
    v_said text;
begin
    if b.name in ('sweep_expired', 'trim_retention', 'trim_streams') then
        done := case b.name when 'sweep_expired' then ff__drop_keys(p_keys, b.now_ms)
                            when 'trim_streams' then ff__trim_frames(p_keys, b.now_ms)
                            else ff__trim_keys(p_keys, b.now_ms, b.retention_ms, b.retention_failed_ms) end;
        free := p_keys;
        moved := done;
        busy_ms := case when done < cardinality(p_keys) then p_due_ms[1] end;
        return;
    end if;
    done := 0;
    free := '{}';
    for v_key, v_due in select x.key, x.due from unnest(p_keys, p_due_ms) x(key, due) loop
        v_said := ff__sweep_row(b.name, v_key);
        if v_said = 'busy' then
            busy_ms := least(busy_ms, v_due);
        else
            done := done + (v_said = 'done')::int;
            free := free || v_key;
        end if;
    end loop;
    moved := cardinality(free);
end
$$;
