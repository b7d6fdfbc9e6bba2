-- Takes executions of a lane for a worker, up to p_limit: locks those that it hands out, and nothing else. Priority, then
-- age, over all queues that the worker covers; what is due competes in order with what is ready. Rows locked by others are
-- stepped over; overdue ones are ended or put back in passing (64 of these, the rest is stepped over); those whose quota policy or
-- budget denies them are parked, those whose policy another transaction has locked are stepped over.
-- p_hold_ms: reserves slots for that long, instead of for leases that are about to be made (ff__admit).
-- A look is one snapshot: others can take its rows while it runs. One that found too little looks again as long as it meets
-- executions that it has not met before: those met twice and not taken are locked by other transactions.
-- None found: work that maintenance would free is freed, once. Still none: the lane notifies when work arrives.
-- None if the lane is unknown, paused or disabled. Never waits. Errors: invalid_lane_id.
create or replace function ff__pick(
    p_lane_id text, p_capabilities text[], p_namespace text, p_limit int, p_hold_ms bigint default null
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_state text;
    v_now bigint;
    v_free int[];
    v_limited int[];
    v_take int := p_limit + 3;
    v_heads uuid[];
    v_ids uuid[];
    v_fit uuid[];
    v_taken uuid[] := '{}'::uuid[];
    v_seen uuid[] := '{}'::uuid[];
    v_id uuid;
    v_heals int := 0;
    v_changed boolean;
    v_unblocked boolean := false;
    v_bound int;
    v_deep boolean := false;
    v_policies text[] := '{}'::text[];
    v_rated text[] := '{}'::text[];
    v_busy text[] := '{}'::text[];
    v_budgets text[] := '{}'::text[];
    a record;
begin
    select l.state into v_state from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        perform ff__check_lane_id(p_lane_id);
    end if;
    if p_limit = 0 then
        return v_taken;
    elsif v_state is null or v_state not in ('active', 'draining') then
        perform ff__unblock(p_lane_id); -- other lanes may have something that is due
        return v_taken;
    end if;
    loop
        select coalesce(array_agg(q.queue_id) filter (where not q.limited), '{}'),
               coalesce(array_agg(q.queue_id) filter (where q.limited), '{}')
          into v_free, v_limited
          from ff_queue q
         where q.lane_id = p_lane_id and (p_namespace is null or q.namespace = p_namespace)
           and q.required_capabilities <@ p_capabilities;
        v_now := ff__now_ms();
        v_heads := ff__heads(v_free, v_now, v_take);
        v_changed := false;
        if v_limited = '{}' then
            v_ids := ff__lock_heads(v_heads, v_taken, p_limit - cardinality(v_taken), v_now, v_heals < 64);
        else
            -- A policy or budget that denied work may have a hundred thousand rows that wait: scan past them only if
            -- nothing else is claimable. Work of a locked policy is not parked, so each claim meets it again.
            v_bound := case when v_deep then null when v_busy <> '{}' then 100
                            when v_policies || v_rated || v_budgets <> '{}' then 1000 end;
            v_heads := v_heads || ff__limited_heads(v_limited, v_now, v_take, v_policies, v_rated, v_busy, v_budgets,
                                                    v_bound);
            -- A block, so that the locks on the rows of a policy that is locked by another transaction are undone.
            begin
                v_ids := ff__lock_heads(v_heads, v_taken, p_limit - cardinality(v_taken), v_now, v_heals < 64);
                -- Those taken in an earlier round ask again: they have no leases yet that would be counted.
                v_fit := array(
                    select u.id
                      from unnest(v_taken || v_ids) with ordinality u(id, n)
                      join ff_execution c on c.execution_id = any (array[u.id])
                     where c.limited and (u.id = any (v_taken) or not ff__overdue(c, v_now)) order by u.n);
                a := ff__admit_many(v_fit, p_hold_ms, v_policies, v_rated, v_busy, v_budgets);
                if a.p_busy <> v_busy then
                    perform ff__raise('concurrency_limit_exceeded', 'undoes the block and with it the locks');
                end if;
            exception when sqlstate 'WF210' then
                v_busy := a.p_busy;
                continue;
            end;
            v_policies := a.p_policies;
            v_rated := a.p_rated;
            v_budgets := a.p_budgets;
            if cardinality(a.p_admitted) < cardinality(v_fit) then
                v_changed := true;
                v_ids := array(select u.id from unnest(v_ids) with ordinality u(id, n)
                                where u.id <> all (v_fit) or u.id = any (a.p_admitted) order by u.n);
                v_taken := array(select u.id from unnest(v_taken) with ordinality u(id, n)
                                  where u.id <> all (v_fit) or u.id = any (a.p_admitted) order by u.n);
            end if;
        end if;
        v_fit := array(
            select u.id
              from unnest(v_ids) with ordinality u(id, n)
              join ff_execution c on c.execution_id = any (array[u.id])
             where not ff__overdue(c, v_now) order by u.n);
        if cardinality(v_fit) < cardinality(v_ids) then
            v_changed := true;
            foreach v_id in array v_ids loop
                if v_id <> all (v_fit) then
                    perform ff__heal(ff__open(v_id));
                    v_heals := v_heals + 1;
                end if;
            end loop;
        end if;
        v_taken := v_taken || v_fit;
        exit when cardinality(v_taken) = p_limit;
        continue when v_changed;
        if v_heads <@ v_seen and v_bound is not null and v_taken = '{}' then
            v_deep := true;
        elsif v_heads <@ v_seen then
            exit when v_taken <> '{}' or v_unblocked or not ff__unblock(p_lane_id);
            v_unblocked := true;
            v_seen := '{}';
        elsif cardinality(v_heads) >= v_take then
            -- Short because others hold some, not because there is no more: look further.
            v_take := v_take * 4;
        end if;
        v_seen := v_seen || v_heads;
    end loop;
    if v_taken = '{}' then
        perform ff__arm_lane(p_lane_id);
    end if;
    return v_taken;
end
$$;

-- What a claim would take first from these queues, unlocked, in the order of rank: at least p_take if there are as many.
-- Of several queues a part is read of each, and what lies behind the end of a part that was read to its end is left out:
-- work that was not read may come before it. What is due: the oldest first, as many as p_take and at least 200 of each queue.
create or replace function ff__heads(p_queues int[], p_now_ms bigint, p_take int) returns uuid[]
language plpgsql stable
as $$
declare
    v_part int := case when cardinality(p_queues) > 1 then 8 + 2 * p_take / cardinality(p_queues) else p_take end;
    v_due uuid[];
    v_ready uuid[];
begin
    v_due := array(
        select h.execution_id
          from unnest(p_queues) q(id)
         cross join lateral (
               select x.execution_id
                 from ff_execution x
                where x.queue_id = q.id and x.due_at_ms <= p_now_ms and ff__claimable(x, p_now_ms)
                  and (x.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                order by x.due_at_ms limit greatest(p_take, 200)) h);
    loop
        with h as materialized (
            select q.id as queue_id, y.execution_id, y.rank
              from unnest(p_queues) q(id)
             cross join lateral (
                   select x.execution_id, x.rank
                     from ff_execution x
                    where x.ready_in = q.id
                      and (x.flow_id is null
                           or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                    order by x.rank limit v_part) y
        )
        select coalesce(array_agg(h.execution_id order by h.rank), '{}') into v_ready
          from h
         where h.rank <= coalesce((select min(g.last) from (select max(z.rank) as last from h z group by z.queue_id
                                                             having count(*) >= v_part) g), 9223372036854775807);
        exit when cardinality(v_ready) >= p_take or v_part >= p_take;
        v_part := v_part * 4;
    end loop;
    return v_ready || v_due;
end
$$;

-- Locks the first of these that can be locked and may still be claimed, in the order of rank; not those in p_except. Without
-- p_overdue, what ff__heal would end or put back is left out.
create or replace function ff__lock_heads(p_heads uuid[], p_except uuid[], p_limit int, p_now_ms bigint, p_overdue boolean)
returns uuid[]
language plpgsql volatile
as $$
begin
    return array(
        select c.execution_id
          from unnest(p_heads) u(id)
          join ff_execution c on c.execution_id = any (array[u.id])
               and ff__claimable(c, p_now_ms) and (p_overdue or not ff__overdue(c, p_now_ms))
         where u.id <> all (p_except)
         order by c.rank limit p_limit for no key update of c skip locked);
end
$$;
