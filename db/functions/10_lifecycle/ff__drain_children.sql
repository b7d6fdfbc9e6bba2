-- Works off ff_child_work, oldest first, for maintenance; with p_parents only the work of these parents and, in turn, of
-- their children that were cancelled or replayed here. Locks work rows, executions and flows, without waiting: what is
-- busy is left. A row that fails is noted under drain_sibling_cancels, the step that calls this, and tried again later.
-- What is done may add to the work list; that is done in a later pass. Twenty passes at most; more: call again.
create or replace function ff__drain_children(
    p_limit int, p_parents uuid[] default null, out processed int, out errors int, out more boolean
)
language plpgsql volatile
as $$
declare
    v_before text := coalesce(current_setting('ff.children', true), '');
    v_failed boolean := exists (select from ff_reconciler_error r
                                 where r.name = 'drain_sibling_cancels' and r.row_key <> '');
    v_now bigint := ff_now_ms();
    v_after bigint := 0;
    v_rows int;
    v_had int;
    v_done boolean;
    w ff_child_work;
begin
    processed := 0;
    errors := 0;
    more := false;
    perform set_config('ff.children', 'on', true);
    for v_pass in 1..20 loop
        v_rows := 0;
        v_had := processed;
        for w in
            select x.* from ff_child_work x
             where x.work_id > v_after and (p_parents is null or x.parent_id = any (p_parents))
               and not (v_failed and ff__put_off('drain_sibling_cancels', 'child ' || x.work_id, v_now))
             order by x.work_id limit greatest(p_limit - processed - errors, 0) for update skip locked
        loop
            v_rows := v_rows + 1;
            v_after := w.work_id;
            begin
                v_done := ff__child_work(w, p_parents is not null);
                processed := processed + v_done::int;
                if v_done and p_parents is not null and w.child_id is not null then
                    p_parents := p_parents || w.child_id;
                end if;
                if v_failed then
                    perform ff__sweep_healed('drain_sibling_cancels', array['child ' || w.work_id]);
                end if;
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                errors := errors + 1;
                perform ff__sweep_failed('drain_sibling_cancels', 'child ' || w.work_id, sqlstate, sqlerrm);
            end;
        end loop;
        more := processed + errors >= p_limit or v_pass = 20 and processed > v_had;
        exit when v_rows = 0 or more;
    end loop;
    perform set_config('ff.children', v_before, true);
end
$$;
