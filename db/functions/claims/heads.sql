-- True if a claimable execution is past its deadline or attempt timeout, or has reached its limit of reclaims: it must
-- not be claimed as it is.
create or replace function ff__is_overdue(c ff_execution, p_now_ms bigint) returns boolean
language sql immutable parallel safe
as $$
    select coalesce((c).deadline_at_ms <= p_now_ms
                    or (c).state in ('leased', 'lease_expired', 'lease_revoked')
                       and ((c).attempt_timeout_at_ms <= p_now_ms
                            or (c).lease_reclaim_count >= coalesce(((c).policy -> 'max_reclaim_count')::int, 100)),
                    false)
$$;

-- Returns the executions that a claim takes first from these queues, unlocked: the first p_take in the order of rank,
-- then those that are due (ff__due_heads). Reads a small part of each queue first, then more of the queues whose unread
-- rows can be among the first.
create or replace function ff__heads(
    p_queues int[], p_starts bigint[], p_now_ms bigint, p_take int, p_whole boolean
) returns uuid[]
language plpgsql stable
as $$
declare
    v_open int[] := p_queues || array(select -u.id from unnest(p_queues) u(id)); -- with those beside (ff__ready_queue)
    v_from bigint[] := p_starts || array_fill(0::bigint, array[cardinality(p_queues)]);
    v_part int := 1 + p_take / greatest(cardinality(v_open), 1);
    v_ids uuid[] := '{}'::uuid[];
    v_ranks bigint[] := '{}'::bigint[];
    v_top bigint;
    r record;
begin
    while v_open <> '{}' loop
        select array_agg(q.id) as queues, array_agg(h.execution_id) as ids, array_agg(h.rank) as ranks into r
          from unnest(v_open, v_from) q(id, from_rank)
         cross join lateral (
               select x.execution_id, x.rank
                 from ff_execution x
                where x.ready_in = q.id and x.rank >= q.from_rank
                  and (x.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                order by x.rank limit v_part) h;
        v_ids := v_ids || r.ids;
        v_ranks := v_ranks || r.ranks;
        v_top := (select u.rank from unnest(v_ranks) u(rank) order by u.rank offset p_take - 1 limit 1);
        select coalesce(array_agg(y.id), '{}'), array_agg(y.last + 1) into v_open, v_from
          from (select u.id, max(u.rank) as last from unnest(r.queues, r.ranks) u(id, rank)
                 group by u.id having count(*) = v_part) y
         where v_top is null or y.last < v_top;
        v_part := greatest(1, p_take / greatest(cardinality(v_open), 1));
    end loop;
    return array(select u.id from unnest(v_ids, v_ranks) u(id, rank) order by u.rank limit p_take)
           || ff__due_heads(p_queues, p_now_ms, p_take, p_whole, '{}', '{}', '{}', '{}', '{}');
end
$$;

-- Returns the executions that are due in these queues, oldest first: p_take of each queue, at least 200. If a queue has
-- more, also the latest ones, so that many delays that ended together do not hide a lease that expired after them.
-- Excludes executions that maintenance failed to process, because a claim would fail as well. p_whole: reads from the
-- beginning of the index, not from ff__start_due. The other arguments are those of ff__is_denied.
create or replace function ff__due_heads(
    p_queues int[], p_now_ms bigint, p_take int, p_whole boolean, p_reserved uuid[], p_policies text[],
    p_rated text[], p_busy text[], p_budgets text[]
) returns uuid[]
language plpgsql stable
as $$
declare
    v_most int := greatest(p_take, 200);
    v_from bigint[] := array(select case when p_whole then 0 else ff__start_due(q, p_now_ms) end
                               from unnest(p_queues) with ordinality u(id, n) join ff_queue q on q.queue_id = u.id
                              order by u.n);
    v_due uuid[];
begin
    v_due := array(
        select h.execution_id
          from unnest(p_queues, v_from) q(id, from_ms)
         cross join lateral (
               select x.execution_id
                 from ff_execution x
                where x.queue_id = q.id and x.due_at_ms between q.from_ms and p_now_ms
                  and ff__claimable(x, p_now_ms)
                  and (x.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                  and not ff__is_denied(x, p_reserved, p_policies, p_rated, p_busy, p_budgets)
                  and not (exists (select from ff_reconciler_error) and ff__due_failed(x.execution_id))
                order by x.due_at_ms limit v_most) h);
    if cardinality(v_due) >= v_most then
        v_due := v_due || array(
            select h.execution_id
              from unnest(p_queues, v_from) q(id, from_ms)
             cross join lateral (
                   select x.execution_id
                     from ff_execution x
                    where x.queue_id = q.id and x.due_at_ms between q.from_ms and p_now_ms
                      and ff__claimable(x, p_now_ms)
                  and (x.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                  and not ff__is_denied(x, p_reserved, p_policies, p_rated, p_busy, p_budgets)
                  and not (exists (select from ff_reconciler_error) and ff__due_failed(x.execution_id))
                    order by x.due_at_ms desc limit v_most) h
             where h.execution_id <> all (v_due));
    end if;
    return v_due;
end
$$;

-- True if maintenance failed to process an execution that is due. A claim of it would fail as well, so claims skip it
-- until a retry of maintenance succeeds.
create or replace function ff__due_failed(p_execution_id uuid) returns boolean
language plpgsql stable
as $$
begin
    return ff__is_backed_off('sweep_expired_leases', p_execution_id::text)
        or ff__is_backed_off('sweep_delayed', p_execution_id::text);
end
$$;

-- Locks the first p_limit executions of a queue, skipping locked rows. overdue: those that ff__apply_overdue ends or
-- returns to the queue, at most 64 if p_limit is greater; fit: the others; fresh: all need only a first lease; held:
-- none, because no attempt has started (see ff__lock_heads). members: some belong to flows.
create or replace function ff__lock_first(
    p_queue int, p_start bigint, p_limit int, p_now_ms bigint,
    out fit uuid[], out overdue uuid[], out fresh boolean, out held uuid[], out members boolean
)
language plpgsql volatile
as $$
declare
    v_overdue uuid[];
begin
    held := '{}';
    if p_limit > 64 and exists (select from ff_execution t
                                 where least(t.deadline_at_ms, t.attempt_timeout_at_ms) <= p_now_ms
                                   and (t.deadline_at_ms is not null or t.attempt_timeout_at_ms is not null)
                                   and t.terminal_at_ms is null)
    then
        v_overdue := array(
            select y.execution_id
              from (select x.execution_id, x.rank, ff__is_overdue(x, p_now_ms) as overdue
                      from ff_execution x
                     where x.ready_in = p_queue and x.rank >= p_start
                     order by x.rank limit p_limit) y
             where y.overdue order by y.rank limit 64);
    end if;
    select coalesce(array_agg(y.execution_id) filter (where not y.overdue), '{}'),
           coalesce(array_agg(y.execution_id) filter (where y.overdue), '{}'), coalesce(bool_and(y.fresh), true),
           coalesce(bool_or(y.member), false)
      into fit, overdue, fresh, members
      from (select x.execution_id, ff__is_overdue(x, p_now_ms) as overdue, x.flow_id is not null as member,
                   x.state = 'ready' and not x.granted as fresh
              from ff_execution x
             where x.ready_in = p_queue and x.rank >= p_start
               and (v_overdue is null or not ff__is_overdue(x, p_now_ms) or x.execution_id = any (v_overdue))
               and (x.flow_id is null
                    or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
             order by x.rank limit p_limit for no key update of x skip locked) y;
end
$$;

-- Locks the first p_limit of p_heads in the order of rank, skipping locked rows, those in p_except, and rows that are
-- no longer claimable or no longer in p_queues: a policy or budget may have been attached since they were read. At most
-- p_heals of those that ff__apply_overdue ends or returns to the queue. Returns as ff__lock_first. held: those whose
-- attempt would end, but whose stream another transaction has locked (ff_watch_stream): to end the attempt would wait.
create or replace function ff__lock_heads(
    p_heads uuid[], p_queues int[], p_except uuid[], p_limit int, p_now_ms bigint, p_heals int,
    out fit uuid[], out overdue uuid[], out fresh boolean, out held uuid[], out members boolean
)
language plpgsql volatile
as $$
declare
    v_overdue uuid[];
    v_streams uuid[];
begin
    if p_limit > p_heals then
        v_overdue := array(
            select c.execution_id
              from unnest(p_heads) u(id)
              join ff_execution c on c.execution_id = any (array[u.id])
             where ff__is_overdue(c, p_now_ms) and u.id not in (select x.id from unnest(p_except) x(id))
             order by c.rank limit p_heals);
    end if;
    select coalesce(array_agg(y.execution_id) filter (where not y.overdue), '{}'),
           coalesce(array_agg(y.execution_id) filter (where y.overdue), '{}'), coalesce(bool_and(y.fresh), true),
           coalesce(bool_or(y.member), false),
           array_agg(y.execution_id) filter (where y.stream_open and (y.overdue or y.crashed))
      into fit, overdue, fresh, members, v_streams
      from (select c.execution_id, ff__is_overdue(c, p_now_ms) as overdue, c.stream_open,
                   c.flow_id is not null as member,
                   c.state in ('leased', 'lease_expired', 'lease_revoked') as crashed,
                   c.state = 'ready' and not c.granted and not c.limited as fresh
              from unnest(p_heads) u(id)
              join ff_execution c on c.execution_id = any (array[u.id])
                   and ff__claimable(c, p_now_ms) and c.queue_id = any (p_queues)
                   and (v_overdue is null or not ff__is_overdue(c, p_now_ms) or u.id = any (v_overdue))
             where u.id not in (select x.id from unnest(p_except) x(id))
             order by c.rank limit p_limit for no key update of c skip locked) y;
    held := '{}';
    if v_streams is not null then
        select coalesce(array_agg(u.id), '{}') into held
          from unnest(v_streams) u(id) where u.id <> all (ff__try_lock_streams(v_streams));
        fit := array(select u.id from unnest(fit) with ordinality u(id, n) where u.id <> all (held) order by u.n);
        overdue := array(select u.id from unnest(overdue) with ordinality u(id, n)
                          where u.id <> all (held) order by u.n);
    end if;
end
$$;

-- Moves the points at which claims start to read a queue: its ranks (ff_queue.start_rank) past the claimed executions,
-- its due times (start_due_ms) past those that have passed. Otherwise, while an old snapshot keeps dead entries in the
-- indexes, each claim reads all of them again.
-- The points move when all transactions that had an id when settled_rank and settled_due_ms were read have ended: what
-- those wrote is visible to the move, and what later ones write comes after the points:
-- - A new execution draws its turn after the id of its transaction. One that returns goes to the queue beside this one
--   (the negative number, see ff__ready_queue).
-- - A due time is not before the clock, which is read after the id of the transaction. If the clock was set back,
--   claims do not use start_due_ms (ff__start_due), and the next move sets it back. Maintenance reads the due index
--   from its beginning, and so does a claim before it requests a notification. So a row is found even if the clock was
--   set back and forward between two moves, or if a transaction stopped between reading the clock and drawing its id
--   for longer than its delay.
-- Must be called before the transaction has an id; otherwise does nothing. Skips a queue locked by another transaction.
-- Claims call it about once per 250 executions, and when a lane has become empty. A point lags behind by one to two
-- moves, and a claim reads the dead entries of both indexes in between, 0.2 us each: 0.15 ms, half of a claim. A move
-- costs 0.2 ms, and each leaves a dead version of the row of the queue, which claims read too.
create or replace function ff__move_start(p_queues int[]) returns void
language plpgsql volatile
as $$
declare
    v_turn bigint;
    v_now bigint;
    v_xid xid8;
    q ff_queue;
begin
    if pg_current_xact_id_if_assigned() is not null then
        return;
    end if;
    v_turn := (select s.last_value from ff_turn_seq s);
    v_now := ff__now_ms();
    v_xid := pg_current_xact_id();
    for q in select x.* from ff_queue x where x.queue_id = any (p_queues) for no key update skip locked loop
        continue when q.settled_xid >= pg_snapshot_xmin(pg_current_snapshot());
        update ff_queue x
           set start_rank = case when q.limited then 0
                                 else greatest(q.start_rank, least(
                                          q.settled_rank, (select c.rank from ff_execution c
                                                            where c.ready_in = q.queue_id and c.rank >= q.start_rank
                                                            order by c.rank limit 1))) end,
               start_due_ms = least(q.settled_due_ms, v_now, (select c.due_at_ms from ff_execution c
                                                               where c.queue_id = q.queue_id
                                                                 and c.due_at_ms >= ff__start_due(q, v_now)
                                                               order by c.due_at_ms limit 1)),
               settled_rank = ff__rank(0, v_turn), settled_due_ms = v_now, settled_xid = v_xid
         where x.queue_id = q.queue_id;
    end loop;
end
$$;

-- The due time from which claims read a queue: ff_queue.start_due_ms, unless the clock was set back since it was moved.
create or replace function ff__start_due(q ff_queue, p_now_ms bigint) returns bigint
language sql immutable parallel safe
as $$
    select case when (q).settled_due_ms <= p_now_ms then (q).start_due_ms else 0 end
$$;

-- True if a claim may take an execution: it is in a queue, or its due time has passed. The only definition of this
-- rule. A lease that was renewed after its check became due has not expired.
create or replace function ff__claimable(c ff_execution, p_now_ms bigint) returns boolean
language sql immutable parallel safe
as $$
    select (c).ready_in is not null
        or (c).due_at_ms <= p_now_ms and ((c).state <> 'leased' or (c).lease_expires_at_ms <= p_now_ms)
$$;

-- ff__heads for queues of executions that need admission. Excludes executions of policies and budgets that have denied
-- admission in this call, except executions that already hold a slot, and except paused or crashed attempts if only the
-- rate of starts is exceeded (p_rated). p_busy: policies locked by another transaction. p_bound: number of rows to read
-- per queue; NULL reads as many as needed, policy by policy if one is locked, so that rows of locked policies are not
-- read.
create or replace function ff__limited_heads(
    p_queues int[], p_now_ms bigint, p_take int, p_whole boolean, p_policies text[], p_rated text[], p_busy text[],
    p_budgets text[], p_bound int
) returns uuid[]
language plpgsql stable
as $$
declare
    v_reserved uuid[] := '{}'::uuid[];
    v_due uuid[];
begin
    if p_policies <> '{}' or p_rated <> '{}' then
        -- Only slots of the execution's own policy count.
        v_reserved := array(select r.execution_id from ff_quota_reservation r
                             where r.quota_policy_id = any (p_policies || p_rated) and r.expires_at_ms > p_now_ms
                               and r.quota_policy_id = (select c.quota_policy_id from ff_execution c
                                                         where c.execution_id = r.execution_id));
    end if;
    v_due := ff__due_heads(p_queues, p_now_ms, p_take, p_whole, v_reserved, p_policies, p_rated, p_busy, p_budgets);
    if p_bound is null and p_busy <> '{}' then
        return v_due || array(
            with recursive policy(state, id) as (
                select s.state, '' collate "C" -- executions with budgets but no policy
                  from unnest('{ready,ready_retry,ready_replay,ready_resume,lease_expired,lease_revoked}'::ff_state[])
                       s(state)
                union all
                select p.state, (select coalesce(c.blocked_budget_id, c.quota_policy_id, '') from ff_execution c
                                  where c.limited and c.terminal_at_ms is null and c.state = p.state
                                    and coalesce(c.blocked_budget_id, c.quota_policy_id, '') > p.id
                                  order by coalesce(c.blocked_budget_id, c.quota_policy_id, '') limit 1)
                  from policy p where p.id is not null
            )
            select h.execution_id
              from policy p
             cross join lateral (
                   select x.execution_id, x.rank
                     from ff_execution x
                    where x.limited and x.terminal_at_ms is null and x.state = p.state
                      and coalesce(x.blocked_budget_id, x.quota_policy_id, '') = p.id
                      and x.ready_in = any (p_queues)
                      and (x.flow_id is null
                           or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                      and not ff__is_denied(x, v_reserved, p_policies, p_rated, p_busy, p_budgets)
                    order by (x.not_before_ms is not null)::int, x.rank limit p_take) h
             where p.id <> all (p_busy)
             order by h.rank limit p_take);
    end if;
    return v_due || array(
        select h.execution_id
          from unnest(p_queues) q(id)
         cross join lateral (
               select x.execution_id, x.rank
                 from (select c.* from ff_execution c where c.ready_in = q.id order by c.rank limit p_bound) x
                where (x.flow_id is null
                       or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                  and not ff__is_denied(x::ff_execution, v_reserved, p_policies, p_rated, p_busy, p_budgets)
                order by x.rank limit p_take) h
         order by h.rank limit p_take);
end
$$;

-- True if a policy or budget of the execution has denied admission in this call (see ff__limited_heads).
create or replace function ff__is_denied(
    c ff_execution, p_reserved uuid[], p_policies text[], p_rated text[], p_busy text[], p_budgets text[]
) returns boolean
language sql immutable parallel safe
as $$
    select coalesce((c).budget_ids && p_budgets
                    or (c).quota_policy_id = any (p_busy)
                    or ((c).quota_policy_id = any (p_policies)
                        or (c).quota_policy_id = any (p_rated)
                           and (c).state in ('ready', 'ready_retry', 'ready_replay', 'delayed', 'delayed_replay',
                                             'backoff_retry'))
                       and (c).execution_id <> all (p_reserved), false)
$$;
