-- No SECURITY DEFINER and no SET, because it commits: the caller needs the right to call ff_tick, which is called with
-- its schema. The steps are read from ff_tick, because callers have no rights on the table.
create or replace procedure ff_run_maintenance(p_max_ms int default 60000)
language plpgsql
as $$
declare
    v_end timestamptz := clock_timestamp() + p_max_ms * interval '1 ms';
    v_again text[];
    v_step text;
begin
    perform from @extschema@.ff_tick(p_only => '{}', p_max_ms => p_max_ms);
    select array_agg(t.step) filter (where t.more or t.skipped) into v_again
      from @extschema@.ff_tick(p_max_ms => 0) t;
    commit;
    while v_again <> '{}' loop
        foreach v_step in array v_again loop
            exit when clock_timestamp() >= v_end;
            if not (select t.more from @extschema@.ff_tick(p_only => array[v_step]) t) then
                v_again := array_remove(v_again, v_step);
            end if;
            commit;
        end loop;
        exit when clock_timestamp() >= v_end;
    end loop;
end
$$;

comment on procedure ff_run_maintenance(int) is
$$Runs all due steps of maintenance (ff_tick), repeatedly while they have more to do, for p_max_ms at most, and commits
after each: for large backlogs. Call it outside a transaction.

Errors: invalid_input$$;
-- grant: ff_worker, ff_operator, ff_admin
