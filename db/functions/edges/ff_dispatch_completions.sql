-- Locks: flows, children, siblings, all without waiting. Safe to run many at once.
create or replace function ff_dispatch_completions(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_flows uuid[];
    v_seen uuid[] := '{}'::uuid[];
    v_flow uuid;
    v_rows int;
    v_busy int;
    v_moved boolean := false;
    v_failed boolean;
    d ff_dispatched;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    v_failed := exists (select from ff_reconciler_error r where r.name = 'dispatch_completions' and r.row_key <> '');
    for v_pass in 1..10 loop
        select array(select distinct y.flow_id from unnest(array_agg(x.flow_id)) y(flow_id) order by y.flow_id),
               count(*)
          into v_flows, v_rows
          from (select y.flow_id
                  from ((select q.flow_id from ff_flow_dispatch q
                          where q.next_dispatch_at_ms <= v_now and q.flow_id not in (select unnest(v_seen))
                            and not (v_failed and ff__is_backed_off('dispatch_completions', q.flow_id::text, v_now))
                          order by q.next_dispatch_at_ms limit p_limit)
                        union all -- the clock has stepped back: see ff__backed_off_ends
                        (select q.flow_id from ff_flow_dispatch q
                          where q.next_dispatch_at_ms > v_now + 60000 and q.flow_id not in (select unnest(v_seen))
                            and not (v_failed and ff__is_backed_off('dispatch_completions', q.flow_id::text, v_now))
                          order by q.next_dispatch_at_ms limit p_limit)) y
                 limit p_limit) x;
        v_busy := 0;
        foreach v_flow in array v_flows loop
            begin
                if ff__try_flow(v_flow) then
                    d := ff__dispatch_flow(v_flow);
                    processed := processed + d.rows_done;
                    v_moved := v_moved or d.rows_done + d.edges_resolved > 0;
                elsif exists (select from ff_flow_core f where f.flow_id = v_flow) then
                    v_busy := v_busy + 1;
                    continue;
                else
                    delete from ff_flow_dispatch q where q.flow_id = v_flow;
                    v_moved := true;
                end if;
                if v_failed then
                    perform ff__delete_sweep_errors('dispatch_completions', array[v_flow::text]);
                end if;
            exception when others then
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
                errors := errors + 1;
                perform ff__record_sweep_error('dispatch_completions', v_flow::text, sqlstate, sqlerrm);
                -- Delay the rows that failed, so that they do not block rows that can be dispatched.
                begin
                    update ff_flow_dispatch q
                       set dispatch_attempts = q.dispatch_attempts + 1,
                           next_dispatch_at_ms = v_now + least(60000, 1000 * 2 ^ least(q.dispatch_attempts, 12))::bigint
                     where q.event_id in (select x.event_id from ff_flow_dispatch x where x.flow_id = v_flow
                                             for update skip locked);
                exception when others then
                    -- The row itself cannot be updated: the recorded error alone delays the retry.
                    if ff__stops_sweep(sqlstate) then
                        raise;
                    end if;
                end;
            end;
        end loop;
        v_seen := v_seen || v_flows;
        -- Locked flows filled the batch: look for others behind them.
        exit when v_busy = 0 or v_rows < p_limit or processed + errors >= p_limit;
    end loop;
    -- More work: rows that are due and that a limit left out.
    v_now := ff__now_ms();
    more := (v_moved or errors > 0) and exists (select from ff_flow_dispatch q where q.next_dispatch_at_ms <= v_now);
end
$$;

comment on function ff_dispatch_completions(int) is
$$Dispatches ends of flow members that have not been dispatched yet (ff_dispatch_completion), grouped by flow. A claim
that finds no work does the same.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
