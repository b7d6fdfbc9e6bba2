-- Locks the next execution of a lane that a worker may take: priority, then age, over all the capability sets it covers.
-- Rows locked by others are stepped over, reserved ones and those of a stopped flow skipped, overdue ones healed in passing
-- (64 of these, the rest is skipped), those whose quota policy or budget says no parked, those whose policy another
-- transaction has locked skipped: their locks are dropped. p_hold_ms: see ff__admission.
-- Returns the row opened (see ff__open), or a row of NULLs. The plain case, work that needs nothing on a lane where
-- nothing is due and no scan is marked, is one statement; whatever that does not find is ff__pick_many's to find, and
-- ff__missed says whether to look again.
create or replace function ff__pick(
    p_lane_id text, p_capabilities text[], p_namespace text, p_hold_ms bigint default null
) returns ff_exec
language plpgsql volatile
as $$
declare
    v_none ff_exec;
    v_now bigint := ff__now_ms();
    v_heals int := 0;
    v_policies text[] := '{}'::text[];
    v_rated text[] := '{}'::text[];
    v_busy text[] := '{}'::text[];
    v_budgets text[] := '{}'::text[];
    v_snapshot text;
    v_seen uuid[];
    v_limited boolean;
    v_fit boolean;
    e ff_exec;
    a ff_admission;
begin
    while v_heals <= 128 loop
        if p_capabilities = '{}' and v_heals < 64 then
            select c.execution_id, c.partition_key, c.flow_id, c.namespace, c.lane_id, c.priority, c.lifecycle_phase,
                   c.ownership_state, c.eligibility_state, c.attempt_state, c.public_state, c.current_attempt_index,
                   c.current_attempt_id, c.total_attempt_count, c.retry_count, c.lease_reclaim_count, c.lease_id,
                   c.lease_epoch, c.lease_expires_at_ms, c.attempt_timeout_at_ms, c.attempt_remaining_ms,
                   c.deadline_at_ms, c.delay_until_ms, c.worker_id, c.worker_instance_id, c.attempt_timeout_ms,
                   c.reserved_until_ms is not null, c.open_waitpoints > 0 or c.stream_open, c.limited,
                   case when not c.tagged then '{}'::jsonb end,
                   greatest(pg_current_xact_id()::text::bigint, c.last_event_ord), null::bigint, null, null
              into e
              from ff_exec_core c
             where c.execution_id = (
                   -- Locks one row and hands out its id alone: wide rows through its three nodes would cost more than
                   -- the second look.
                   select x.execution_id from ff_exec_core x
                    where x.lane_id = p_lane_id and not x.limited and x.caps_key = ''
                      and x.blocking_reason = 'waiting_for_worker'
                      and not x.flow_stopped
                      and (x.reserved_until_ms is null or x.reserved_until_ms <= v_now)
                      and (p_namespace is null or x.namespace = p_namespace)
                      and (x.flow_id is null
                           or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                      and exists (select from ff_lane_registry l
                                   where l.lane_id = p_lane_id and l.state in ('active', 'draining')
                                     and not l.marked
                                     and (not l.limited or not exists (
                                          select from ff_exec_core y
                                           where y.lane_id = p_lane_id and y.limited
                                             and y.blocking_reason = 'waiting_for_worker' and not y.flow_stopped)))
                      and not exists (
                          select from ff_exec_core d
                           where d.lane_id = p_lane_id and coalesce(d.lease_check_at_ms, d.delay_until_ms) <= v_now
                             and (d.ownership_state = 'leased' or d.eligibility_state = 'not_eligible_until_time'))
                    order by x.priority desc, x.created_at_ms, x.execution_id
                    limit 1 for update of x skip locked)
               for update;
        end if;
        if e.execution_id is not null then
            if ff__walked() > 20000 then
                perform ff__mark_scan(p_lane_id, '', e.priority);
            end if;
        else
            v_snapshot := pg_current_snapshot()::text;
            v_limited := coalesce(v_limited, (select l.limited from ff_lane_registry l where l.lane_id = p_lane_id), false);
            if v_limited then
                begin
                    e := ff__open((ff__pick_many(p_lane_id, p_capabilities, p_namespace, 1,
                                                 v_heals = 0 and coalesce(a.outcome = 'busy', true), v_heals < 64,
                                                 v_policies, v_rated, v_busy, v_budgets))[1]);
                    v_fit := e.limited and (e.flow_id is null or ff__flow_claimable(e.flow_id)) and not ff__heal(e, false);
                    if v_fit then
                        a := ff__admission(e, p_hold_ms);
                        if a.outcome = 'busy' then
                            perform ff__raise('concurrency_limit_exceeded', 'undoes the block and with it the lock');
                        end if;
                    end if;
                exception when sqlstate 'WF210' then
                    v_busy := v_busy || a.quota_policy_id;
                    e := v_none;
                    continue;
                end;
            else
                e := ff__open((ff__pick_many(p_lane_id, p_capabilities, p_namespace, 1, v_heals = 0, v_heals < 64,
                                             v_policies, v_rated, v_busy, v_budgets))[1]);
            end if;
            if e.execution_id is null then
                v_seen := ff__missed(p_lane_id, p_capabilities, p_namespace, v_snapshot, v_seen, v_policies, v_rated,
                                     v_busy, v_budgets);
                exit when v_seen is null;
                continue;
            end if;
        end if;
        if v_fit then
            if a.admitted <> '{}' then
                e.now_ms := a.now_ms;
                return e;
            end if;
            perform ff__park(e, a);
            if a.outcome = 'budget_exceeded' then
                v_budgets := v_budgets || a.budget_id;
            elsif a.outcome = 'rate_exceeded' then
                v_rated := v_rated || a.quota_policy_id;
            else
                v_policies := v_policies || a.quota_policy_id;
            end if;
            v_fit := false;
        else
            e.now_ms := ff__now_ms();
            -- Most rows are ready, with no time limit: they need no closer look.
            if not e.limited
               and ((e.lifecycle_phase = 'runnable' and e.deadline_at_ms is null and e.flow_id is null) is true
                    or (e.flow_id is null or ff__flow_claimable(e.flow_id)) and not ff__heal(e, v_heals < 64))
            then
                return e;
            elsif e.limited and not v_limited then
                v_limited := true; -- the lane was not limited when this call began
            else
                if e.limited and (e.flow_id is null or ff__flow_claimable(e.flow_id)) then
                    perform ff__heal(e, v_heals < 64);
                end if;
                v_heals := v_heals + 1;
            end if;
        end if;
        e := v_none;
    end loop;
    return v_none;
end
$$;
