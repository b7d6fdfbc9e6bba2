-- Locks: flows and executions, without waiting. Safe to run many at once.
create or replace function ff_drain_cancel_backlog(
    p_limit int default 200, p_flow_id uuid default null, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_flow uuid;
    v_done int;
    v_ids uuid[];
    v_failed boolean;
    d record;
    f ff_flow_core;
begin
    perform ff__check_limit(p_limit, 100000);
    processed := 0;
    errors := 0;
    more := false;
    v_failed := exists (select from ff_reconciler_error r where r.name = 'drain_cancel_backlog' and r.row_key <> '');
    for v_flow in
        select b.flow_id from ff_cancel_backlog b
         where b.grace_until_ms <= v_now and (p_flow_id is null or b.flow_id = p_flow_id)
           and not (v_failed and ff__is_backed_off('drain_cancel_backlog', b.flow_id::text, v_now))
         order by b.grace_until_ms
    loop
        if processed >= p_limit then
            more := true;
            exit;
        end if;
        begin
            if ff__try_flow(v_flow) then
                select x.* into f from ff_flow_core x where x.flow_id = v_flow;
                v_ids := ff__covered_members(f, p_limit - processed);
                more := more or cardinality(v_ids) = p_limit - processed;
                d := ff__drain_members(f, v_ids, v_failed);
                v_done := d.done;
                errors := errors + d.errors;
                with ended as (
                    delete from ff_cancel_backlog_member m
                     using ff_execution c
                     where m.flow_id = v_flow and c.execution_id = m.execution_id and c.terminal_at_ms is not null
                    returning m.execution_id)
                select greatest(v_done, count(*)) into v_done from ended;
                processed := processed + v_done;
                perform ff__close_flow(v_flow);
                delete from ff_cancel_backlog b
                 where b.flow_id = v_flow
                   and not exists (select from ff_cancel_backlog_member m where m.flow_id = v_flow);
                if v_done = 0 then
                    -- All remaining members are running or failed to end: move the flow away from the head of the next
                    -- batch.
                    update ff_cancel_backlog b set grace_until_ms = v_now + 5000
                     where b.flow_id = v_flow
                       and not exists (select from ff_cancel_backlog_member m
                                         join ff_execution c on c.execution_id = m.execution_id
                                        where m.flow_id = v_flow
                                          and ff__is_cancel_covered(f.cancellation_policy, c.state,
                                                                    c.lease_expires_at_ms, v_now)
                                          and not ff__is_backed_off('drain_cancel_backlog', m.execution_id::text));
                end if;
            elsif not exists (select from ff_flow_core x where x.flow_id = v_flow) then
                delete from ff_cancel_backlog_member m where m.flow_id = v_flow;
                delete from ff_cancel_backlog b where b.flow_id = v_flow;
                processed := processed + 1;
            else
                continue;
            end if;
            if v_failed then
                perform ff__delete_sweep_errors('drain_cancel_backlog', array[v_flow::text]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            errors := errors + 1;
            perform ff__record_sweep_error('drain_cancel_backlog', v_flow::text, sqlstate, sqlerrm);
            begin
                update ff_cancel_backlog b
                   set grace_until_ms = coalesce(
                           (select r.next_retry_at_ms from ff_reconciler_error r
                             where r.name = 'drain_cancel_backlog' and r.row_key = v_flow::text), v_now + 5000)
                 where b.flow_id = (select x.flow_id from ff_cancel_backlog x
                                     where x.flow_id = v_flow for update skip locked);
            exception when others then
                -- The backlog row itself cannot be updated: the recorded error alone delays the retry.
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
            end;
        end;
    end loop;
end
$$;

comment on function ff_drain_cancel_backlog(int, uuid) is
$$Ends members of cancelled flows that the cancelling call did not end: there were too many, they were locked, a grace
period was given, or they were running and no longer are. p_flow_id: only members of that flow.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin

-- Locks members in the backlog of a cancelled flow that its policy covers and that have not ended, up to p_limit, in id
-- order. Skips members that are locked (or whose stream is locked) and members that ff_drain_cancel_backlog failed to
-- end and whose retry is not due. The caller holds the flow.
create or replace function ff__covered_members(f ff_flow_core, p_limit int) returns uuid[]
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
begin
    return ff__try_lock_streams(array(
        select c.execution_id
          from ff_cancel_backlog_member m join ff_execution c on c.execution_id = m.execution_id
         where m.flow_id = f.flow_id and c.terminal_at_ms is null
           and ff__is_cancel_covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now)
           and not ff__is_backed_off('drain_cancel_backlog', m.execution_id::text, v_now)
         order by m.execution_id limit p_limit for no key update of c skip locked));
end
$$;

-- Ends members of a cancelled flow for ff_drain_cancel_backlog; the caller has locked them. Ends them as a set, or, if
-- one of them fails, one by one, and records the failures. p_failed: earlier failures may be recorded.
create or replace function ff__drain_members(
    f ff_flow_core, p_ids uuid[], p_failed boolean, out done int, out errors int
)
language plpgsql volatile
as $$
declare
    v_id uuid;
begin
    done := 0;
    errors := 0;
    begin
        done := ff__cancel_members(f, p_ids);
        if p_failed then
            perform ff__delete_sweep_errors('drain_cancel_backlog', p_ids::text[]);
        end if;
        return;
    exception when others then
        if ff__stops_sweep(sqlstate) then
            raise;
        end if;
        done := 0;
    end;
    foreach v_id in array p_ids loop
        begin
            done := done + ff__cancel_members(f, array[v_id]);
            if p_failed then
                perform ff__delete_sweep_errors('drain_cancel_backlog', array[v_id::text]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            errors := errors + 1;
            perform ff__record_sweep_error('drain_cancel_backlog', v_id::text, sqlstate, sqlerrm);
        end;
    end loop;
end
$$;
