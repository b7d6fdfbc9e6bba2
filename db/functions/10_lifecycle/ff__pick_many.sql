-- Locks the next executions of a lane that a worker may take, up to p_limit, in the order of ff__pick, which is the same
-- for one. What is due on the lane enters the ready index first, if p_enter_due. Returns their ids in that order; nothing
-- is healed or admitted here. Without p_overdue, what ff__heal would end or put back is skipped, however much of it there
-- is. p_policies, p_rated, p_busy, p_budgets: policies without a free slot, policies without a start, policies that
-- another transaction has locked and budgets that denied work in this call and are passed over.
-- None if the lane is unknown, paused or disabled.
-- Errors: invalid_lane_id.
create or replace function ff__pick_many(
    p_lane_id text, p_capabilities text[], p_namespace text, p_limit int, p_enter_due boolean, p_overdue boolean,
    p_policies text[], p_rated text[], p_busy text[], p_budgets text[]
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
    v_walked bigint := ff__walked();
    v_others bigint;
    v_state text;
    v_marked boolean;
    v_limited boolean;
    v_bound int;
    v_keys text[];
    v_limited_keys text[];
    v_ids uuid[];
    v_heads uuid[];
    v_more uuid[] := '{}'::uuid[];
    v_take int := p_limit + 16;
begin
    select l.state, l.marked, l.limited into v_state, v_marked, v_limited
      from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        perform ff__check_lane_id(p_lane_id);
        return '{}'::uuid[];
    elsif v_state not in ('active', 'draining') then
        return '{}'::uuid[];
    end if;
    if p_enter_due then
        perform ff__enter_due(p_lane_id, v_now, v_marked);
    end if;
    v_keys := ff__covered_keys(p_lane_id, p_capabilities, false);
    if v_limited then
        v_others := ff__walked();
        v_limited := exists (select from ff_exec_core c
                              where c.lane_id = p_lane_id and c.limited and c.blocking_reason = 'waiting_for_worker'
                                and not c.flow_stopped);
        v_walked := v_walked + ff__walked() - v_others; -- marks are for the other half
    end if;
    if cardinality(v_keys) = 1 and not v_marked and not v_limited and p_overdue then
        v_ids := array(
            select c.execution_id from ff_exec_core c
             where c.lane_id = p_lane_id and not c.limited and c.caps_key = v_keys[1]
               and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
               and (c.reserved_until_ms is null or c.reserved_until_ms <= v_now)
               and (p_namespace is null or c.namespace = p_namespace)
               and (c.flow_id is null
                    or coalesce((select f.claimable from ff_flow_core f where f.flow_id = c.flow_id), true))
             order by c.priority desc, c.created_at_ms, c.execution_id
             limit p_limit for update of c skip locked);
    elsif cardinality(v_keys) <= 16 and not v_marked and not v_limited and p_overdue then
        v_ids := ff__pick_merged(p_lane_id, v_keys, p_namespace, v_now, p_limit);
    else
        if v_limited then
            v_limited_keys := ff__covered_keys(p_lane_id, p_capabilities, true);
            -- A policy or budget that denied work may have a hundred thousand rows that wait: a claim looks behind all of
            -- them only if there is no other work. Work of a locked policy is not parked, so each claim meets it again.
            v_bound := case when p_busy <> '{}' then 100 when p_policies || p_rated || p_budgets <> '{}' then 1000 end;
        end if;
        -- The heads of all sets merged, unlocked; then the first that can be locked. Locking each head first would hide
        -- work from others.
        loop
            v_heads := ff__heads(p_lane_id, v_keys, v_marked, p_namespace, v_now, v_take);
            if v_limited then
                v_others := ff__walked();
                v_more := ff__limited_heads(p_lane_id, v_limited_keys, p_namespace, v_now, v_take, p_policies, p_rated,
                                            p_busy, p_budgets, v_bound);
                v_walked := v_walked + ff__walked() - v_others;
            end if;
            v_ids := array(
                select c.execution_id
                  from unnest(v_heads || v_more) x(id)
                  join ff_exec_core c on c.execution_id = any (array[x.id]) -- see ff__open_many
                       -- CASE, so that no plan reads all that is ready.
                       and case when c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
                                then (c.reserved_until_ms is null or c.reserved_until_ms <= v_now)
                                     and (p_overdue or (c.deadline_at_ms <= v_now or c.lifecycle_phase = 'active'
                                          and (c.attempt_timeout_at_ms <= v_now
                                               or c.lease_reclaim_count >= ff__max_reclaims(c.execution_id))) is not true)
                                end
                 order by c.priority desc, c.created_at_ms, c.execution_id limit p_limit for update of c skip locked);
            exit when cardinality(v_ids) = p_limit;
            if cardinality(v_heads) < v_take and cardinality(v_more) < v_take then
                exit when v_bound is null or v_ids <> '{}';
                v_bound := null;
            else
                -- Short because others hold some or they are overdue, not because there is no more: look further.
                v_take := v_take * 4;
            end if;
        end loop;
    end if;
    if ff__walked() - v_walked > (case when v_marked then 400 else 20000 + 100 * p_limit end)
                                    + 2 * cardinality(v_keys) * v_take then
        perform ff__mark_scan(p_lane_id, k.key, (select c.priority from ff_exec_core c where c.execution_id = v_ids[1]))
           from unnest(v_keys) k(key);
    elsif v_marked and (v_ids = '{}' or random() < 0.05) then
        -- Now and then somebody looks behind the marks, one at a time: seldom enough that the walk does not matter.
        perform ff__mark_scan(p_lane_id, k.key, null, true)
           from unnest(v_keys) k(key)
          where exists (select from ff__marks(p_lane_id, k.key) m
                         where m.looked_ms + greatest(1000, least(m.walked / 50, 5000)) <= v_now)
            and pg_try_advisory_xact_lock(hashtextextended('ff_scan_mark ' || p_lane_id, 0));
    end if;
    return v_ids;
end
$$;
