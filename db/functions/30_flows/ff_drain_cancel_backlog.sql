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
                    -- Only members that run, or that could not be ended: not at the head of the next batch.
                    update ff_cancel_backlog b set grace_until_ms = v_now + 5000
                     where b.flow_id = v_flow
                       and not exists (select from ff_cancel_backlog_member m
                                         join ff_execution c on c.execution_id = m.execution_id
                                        where m.flow_id = v_flow
                                          and ff__covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now)
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
                perform ff__sweep_healed('drain_cancel_backlog', array[v_flow::text]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            errors := errors + 1;
            perform ff__sweep_failed('drain_cancel_backlog', v_flow::text, sqlstate, sqlerrm);
            begin
                update ff_cancel_backlog b
                   set grace_until_ms = coalesce(
                           (select r.next_retry_at_ms from ff_reconciler_error r
                             where r.name = 'drain_cancel_backlog' and r.row_key = v_flow::text), v_now + 5000)
                 where b.flow_id = (select x.flow_id from ff_cancel_backlog x
                                     where x.flow_id = v_flow for update skip locked);
            exception when others then
                -- It is the row itself: the note alone puts it off.
                if ff__stops_sweep(sqlstate) then
                    raise;
                end if;
            end;
        end;
    end loop;
end
$$;

comment on function ff_drain_cancel_backlog(int, uuid) is
$$Ends members of cancelled flows that could not be ended in the call that cancelled them: there were too many, they were
busy, a grace was given, or they ran and do not any more. p_flow_id: of that flow alone.

Errors: invalid_input$$;

-- Locks members in the backlog of a cancelled flow that its policy covers and that have not ended, up to p_limit, in the
-- order of their ids; passed over are busy ones (by their stream, too), and those that ff_drain_cancel_backlog failed to
-- end and whose next try has not come. The caller holds the flow.
create or replace function ff__covered_members(f ff_flow_core, p_limit int) returns uuid[]
language plpgsql volatile
as $$
declare
    v_now bigint := ff_now_ms();
begin
    return ff__free_streams(array(
        select c.execution_id
          from ff_cancel_backlog_member m join ff_execution c on c.execution_id = m.execution_id
         where m.flow_id = f.flow_id and c.terminal_at_ms is null
           and ff__covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now)
           and not ff__is_backed_off('drain_cancel_backlog', m.execution_id::text, v_now)
         order by m.execution_id limit p_limit for no key update of c skip locked));
end
$$;

-- Ends these members of a cancelled flow, which the caller has locked, for ff_drain_cancel_backlog: as a set, or if one of
-- them cannot be ended each on its own, and those that cannot are noted. p_failed: earlier failures may be noted.
create or replace function ff__drain_members(f ff_flow_core, p_ids uuid[], p_failed boolean, out done int, out errors int)
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
            perform ff__sweep_healed('drain_cancel_backlog', p_ids::text[]);
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
                perform ff__sweep_healed('drain_cancel_backlog', array[v_id::text]);
            end if;
        exception when others then
            if ff__stops_sweep(sqlstate) then
                raise;
            end if;
            errors := errors + 1;
            perform ff__sweep_failed('drain_cancel_backlog', v_id::text, sqlstate, sqlerrm);
        end;
    end loop;
end
$$;
