-- Works off ff_child_work, oldest first, for maintenance; with p_parents only the work of these parents and, in turn, of
-- their children that were cancelled or replayed here. Locks work rows, executions and flows, without waiting: what is
-- busy is left, and a parent that is busy with all of its work. A row that fails is noted under drain_sibling_cancels, the step that calls this, and tried again later.
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
    v_now bigint := ff__now_ms();
    v_after bigint := 0;
    v_ids bigint[];
    v_busy uuid[] := '{}'::uuid[];
    v_had int;
    v_result text;
    w ff_child_work;
begin
    processed := 0;
    errors := 0;
    more := false;
    perform set_config('ff.children', 'on', true);
    for v_pass in 1..20 loop
        v_had := processed;
        -- Two statements, so that the work of some parents is found by the index on them.
        if p_parents is null then
            v_ids := array(
                select x.work_id from ff_child_work x
                 where x.work_id > v_after and x.parent_id <> all (v_busy)
                   and not (v_failed and ff__is_backed_off('drain_sibling_cancels', 'child ' || x.work_id, v_now))
                 order by x.work_id limit greatest(p_limit - processed - errors, 0));
        else
            v_ids := array(
                select x.work_id from unnest(p_parents) p(id) join ff_child_work x on x.parent_id = p.id
                 where x.work_id > v_after and x.parent_id <> all (v_busy)
                   and not (v_failed and ff__is_backed_off('drain_sibling_cancels', 'child ' || x.work_id, v_now))
                 order by x.work_id limit greatest(p_limit - processed - errors, 0));
        end if;
        for w in
            select x.* from ff_child_work x where x.work_id = any (v_ids) order by x.work_id for update skip locked
        loop
            continue when w.parent_id = any (v_busy);
            begin
                v_result := ff__child_work(w, p_parents is not null);
                if v_result = 'parent_busy' then
                    v_busy := v_busy || w.parent_id;
                elsif v_result = 'done' then
                    processed := processed + 1;
                    if p_parents is not null and w.child_id is not null then
                        p_parents := p_parents || w.child_id;
                    end if;
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
        exit when more or v_ids = '{}';
        v_after := v_ids[cardinality(v_ids)];
    end loop;
    perform set_config('ff.children', v_before, true);
end
$$;
