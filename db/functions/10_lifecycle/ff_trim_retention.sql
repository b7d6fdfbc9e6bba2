-- Locks: the flows and executions it deletes (skip locked). Children first, set by set. Never waits. What has still to
-- give back what it spent (ff_sweep_terminal_spend) stays until it has.
create or replace function ff_trim_retention(
    p_retention_ms bigint default null,
    p_lane_id text default null,
    p_namespace text default null,
    p_limit int default 1000,
    out processed int,
    out errors int,
    out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_own bigint;
    v_outcome text;
    v_ids uuid[];
    b ff_sweep;
begin
    perform ff__check_time('p_retention_ms', p_retention_ms, p_from_ms => ff__now_ms());
    perform ff__check_limit(p_limit, 100000);
    if p_lane_id is not null then
        perform ff__check_lane_id(p_lane_id);
    end if;
    if p_namespace is not null then
        perform ff__check_text('p_namespace', p_namespace, 1, 64);
    end if;
    b := ff__sweep_open(
        'trim_retention', p_limit, p_lane_id is null and p_namespace is null,
        coalesce(p_retention_ms, (select s.value::bigint from ff_setting s where s.name = 'retention_ms')),
        coalesce(p_retention_ms, (select s.value::bigint from ff_setting s where s.name = 'retention_failed_ms')));

    while b.again loop
        -- Those whose policy has no retention, then one probe per retention of a policy; each by outcome, as in the index.
        -- A probe finds the oldest; the due ones are read of those whose oldest is due.
        v_ids := array(
            select x.execution_id
              from unnest('{success,skipped,failed,cancelled,expired}'::text[]) o(outcome)
             cross join lateral (
                   select c.execution_id from ff_exec_core c
                    where c.lifecycle_phase = 'terminal' and c.flow_id is null and c.retention_ms is null
                      and c.terminal_outcome = o.outcome
                      and c.terminal_at_ms
                          <= b.now_ms - ff__retention_ms(null, o.outcome, b.retention_ms, b.retention_failed_ms)
                      and (p_lane_id is null or c.lane_id = p_lane_id)
                      and (p_namespace is null or c.namespace = p_namespace)
                      and not c.spends and not ff__owes_spend(c.execution_id)
                      and not (b.putting_off and ff__put_off(b.name, 'x' || c.execution_id))
                      and ('x' || c.execution_id) not in (select unnest(b.seen))
                    order by c.terminal_at_ms limit b.room) x);
        for v_own, v_outcome in
            with recursive own as (
                (select c.retention_ms, c.terminal_outcome, c.terminal_at_ms from ff_exec_core c
                  where c.lifecycle_phase = 'terminal' and c.flow_id is null and c.retention_ms > -1
                  order by c.retention_ms, c.terminal_outcome, c.terminal_at_ms limit 1)
                union all
                select n.retention_ms, n.terminal_outcome, n.terminal_at_ms
                  from own o
                 cross join lateral (
                       select c.retention_ms, c.terminal_outcome, c.terminal_at_ms from ff_exec_core c
                        where c.lifecycle_phase = 'terminal' and c.flow_id is null
                          and (c.retention_ms, c.terminal_outcome) > (o.retention_ms, o.terminal_outcome)
                        order by c.retention_ms, c.terminal_outcome, c.terminal_at_ms limit 1) n)
            select o.retention_ms, o.terminal_outcome from own o where o.terminal_at_ms <= b.now_ms - o.retention_ms
        loop
            v_ids := v_ids || array(
                select c.execution_id from ff_exec_core c
                 where c.lifecycle_phase = 'terminal' and c.flow_id is null and c.retention_ms = v_own
                   and c.terminal_outcome = v_outcome and c.terminal_at_ms <= b.now_ms - v_own
                   and (p_lane_id is null or c.lane_id = p_lane_id) and (p_namespace is null or c.namespace = p_namespace)
                   and not c.spends and not ff__owes_spend(c.execution_id)
                   and not (b.putting_off and ff__put_off(b.name, 'x' || c.execution_id))
                   and ('x' || c.execution_id) not in (select unnest(b.seen))
                 order by c.terminal_at_ms limit b.room);
        end loop;
        -- The oldest of all of them.
        b.keys := array(
            select 'x' || c.execution_id from unnest(v_ids) x(id) join ff_exec_core c on c.execution_id = x.id
             order by c.terminal_at_ms, c.execution_id limit b.room);
        if p_lane_id is null and cardinality(b.keys) < b.room then
            b.keys := b.keys || array(
                select 'f' || x.id
                  from unnest(ff__trim_flows(b.retention_ms, b.retention_failed_ms, p_namespace,
                                             b.room - cardinality(b.keys), b.seen)) with ordinality x(id, n)
                 order by x.n);
        end if;
        b := ff__sweep_batch(b);
    end loop;
    select s.processed, s.errors, s.more into processed, errors, more from ff__sweep_close(b) s;
end
$$;

comment on function ff_trim_retention(bigint, text, text, int) is
$$Deletes executions that ended long enough ago, with everything that hangs off them. They are kept for policy.retention_ms if
they have one; else for the setting retention_ms (7 days) when they ended completed or skipped, retention_failed_ms
(30 days) when they ended failed, cancelled or expired. p_retention_ms, if given, takes the place of both settings.
A flow goes as a whole, when nothing in it lives and the longest of its members' times has passed, and counts one; not when
p_lane_id is given. Oldest first, at most p_limit per call; more says whether to call again. Events and idempotency keys
stay: they have times of their own.

Errors: invalid_input, invalid_lane_id$$;
