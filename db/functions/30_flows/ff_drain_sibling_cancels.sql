-- Locks: flows and executions, without waiting. Safe to run many at once.
create or replace function ff_drain_sibling_cancels(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    o record;
    e ff_exec;
    v_now bigint := ff__now_ms();
    v_seen text[] := '{}'::text[];
    v_keys text[];
    v_held uuid[] := '{}'::uuid[];
    v_rows int;
    v_busy int;
    v_failed boolean;
    v_key text;
    d record;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    v_failed := exists (select from ff_reconciler_error r where r.name = 'drain_sibling_cancels' and r.row_key <> '');
    for v_pass in 1..10 loop
        v_rows := 0;
        v_busy := 0;
        v_keys := '{}';
        for o in
            select x.* from ff_cancel_dispatch_outbox x
             where x.enqueued_at_ms <= v_now and x.flow_id not in (select unnest(v_held))
               and (x.target_eid || ' ' || x.downstream_eid) not in (select unnest(v_seen))
               and not (v_failed and ff__put_off('drain_sibling_cancels', x.target_eid || ' ' || x.downstream_eid, v_now))
             order by x.enqueued_at_ms limit p_limit
        loop
            v_rows := v_rows + 1;
            v_key := o.target_eid || ' ' || o.downstream_eid;
            v_keys := v_keys || v_key;
            begin
                if ff__try_flow(o.flow_id) then
                    e := ff__try_open(o.target_eid);
                    if e.execution_id is not null
                       or not exists (select from ff_exec_core c where c.execution_id = o.target_eid) then
                        -- Gone or ended: nothing to do. Needed again: neither.
                        if e.lifecycle_phase <> 'terminal' and not ff__feeds_pending(o.flow_id, o.target_eid) then
                            perform ff__cancel(e, 'override', o.reason, 'engine');
                        end if;
                        delete from ff_cancel_dispatch_outbox x
                         where x.target_eid = o.target_eid and x.downstream_eid = o.downstream_eid;
                        processed := processed + 1;
                    else
                        v_busy := v_busy + 1;
                    end if;
                    perform ff__close_flow(o.flow_id);
                elsif not exists (select from ff_flow_core f where f.flow_id = o.flow_id) then
                    delete from ff_cancel_dispatch_outbox x where x.flow_id = o.flow_id and x.target_eid = o.target_eid;
                    processed := processed + 1;
                else
                    v_busy := v_busy + 1;
                    v_held := v_held || o.flow_id;
                    continue;
                end if;
                if v_failed then
                    perform ff__sweep_healed('drain_sibling_cancels', array[v_key]);
                end if;
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                errors := errors + 1;
                perform ff__sweep_failed('drain_sibling_cancels', v_key, sqlstate, sqlerrm);
                -- To the end of the queue, and behind the clock.
                begin
                    update ff_cancel_dispatch_outbox x
                       set enqueued_at_ms = coalesce(
                               (select r.next_retry_at_ms from ff_reconciler_error r
                                 where r.name = 'drain_sibling_cancels' and r.row_key = v_key), v_now + 1000)
                     where (x.target_eid, x.downstream_eid) in (
                           select y.target_eid, y.downstream_eid from ff_cancel_dispatch_outbox y
                            where y.target_eid = o.target_eid and y.downstream_eid = o.downstream_eid
                              for update skip locked);
                exception when others then
                    -- It is the row itself: the note alone puts it off.
                    if ff__stops_sweep(sqlstate) then
                        raise;
                    end if;
                end;
            end;
        end loop;
        v_seen := v_seen || v_keys;
        -- Behind rows that are busy there may be others.
        exit when v_busy = 0 or v_rows < p_limit or processed + errors >= p_limit;
    end loop;
    more := p_limit > 0 and v_rows = p_limit and processed + errors > 0;
    d := ff__drain_children(p_limit - processed - errors);
    processed := processed + d.processed;
    errors := errors + d.errors;
    more := more or p_limit > 0 and d.more;
end
$$;

comment on function ff_drain_sibling_cancels(int) is
$$Cancels members that a decided group no longer needs and that were busy when it was decided. Cancels the children of
executions that ended other than by success, and replays those of replayed ones, if there were too many, they were busy, or
they were created at the same time. Counts checks of parents that turn out to need nothing as well.

Errors: invalid_input$$;
