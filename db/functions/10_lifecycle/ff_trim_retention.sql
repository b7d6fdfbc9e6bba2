-- Locks: the flows and executions it deletes (skip locked). Children first, set by set. Never waits.
create or replace function ff_trim_retention(
    p_retention_ms bigint default 86400000,
    p_lane_id text default null,
    p_namespace text default null,
    p_limit int default 1000,
    out processed int,
    out errors int,
    out more boolean
)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
as $$
declare
    v_now bigint := ff_now_ms();
    v_own bigint := -1;
    v_ids uuid[] := '{}'::uuid[];
    v_flows int := 0;
    v_members uuid[] := '{}'::uuid[];
begin
    if p_retention_ms is null or p_retention_ms not between 0 and 9007199254740991 then
        perform ff__invalid('p_retention_ms', 'must be 0 or more');
    end if;
    perform ff__check_limit(p_limit, 100000);
    if p_lane_id is not null then
        perform ff__check_lane_id(p_lane_id);
    end if;
    if p_namespace is not null then
        perform ff__check_text('p_namespace', p_namespace, 1, 64);
    end if;

    -- Those whose policy says nothing, then one probe per retention that policies ask for: each is a range of the index.
    v_ids := array(
        select c.execution_id from ff_exec_core c
         where c.lifecycle_phase = 'terminal' and c.flow_id is null and c.retention_ms is null
           and c.terminal_at_ms <= v_now - p_retention_ms
           and (p_lane_id is null or c.lane_id = p_lane_id) and (p_namespace is null or c.namespace = p_namespace)
         order by c.terminal_at_ms limit p_limit);
    loop
        select c.retention_ms into v_own from ff_exec_core c
         where c.lifecycle_phase = 'terminal' and c.flow_id is null and c.retention_ms > v_own
         order by c.retention_ms limit 1;
        exit when not found;
        v_ids := v_ids || array(
            select c.execution_id from ff_exec_core c
             where c.lifecycle_phase = 'terminal' and c.flow_id is null and c.retention_ms = v_own
               and c.terminal_at_ms <= v_now - v_own
               and (p_lane_id is null or c.lane_id = p_lane_id) and (p_namespace is null or c.namespace = p_namespace)
             order by c.terminal_at_ms limit p_limit);
    end loop;
    -- The oldest of all of them, if they are still what they were.
    v_ids := array(
        select c.execution_id
          from unnest(v_ids) x(id)
          join ff_exec_core c on c.execution_id = x.id
               -- CASE, so that no plan reads all that ended.
               and case when c.lifecycle_phase = 'terminal' and c.flow_id is null
                        then c.terminal_at_ms <= v_now - coalesce(c.retention_ms, p_retention_ms) end
         order by c.terminal_at_ms, c.execution_id limit p_limit for update of c skip locked);

    processed := cardinality(v_ids);
    if p_lane_id is null and processed < p_limit then
        select t.flows, t.members into v_flows, v_members
          from ff__trim_flows(p_retention_ms, p_namespace, p_limit - processed) t;
        processed := processed + v_flows;
        v_ids := v_ids || v_members;
    end if;

    delete from ff_stream_frame f using unnest(v_ids) x(id) where f.execution_id = x.id;
    delete from ff_stream_summary s using unnest(v_ids) x(id) where s.execution_id = x.id;
    delete from ff_stream_meta m using unnest(v_ids) x(id) where m.execution_id = x.id;
    delete from ff_signal s using unnest(v_ids) x(id) where s.execution_id = x.id;
    delete from ff_waitpoint w using unnest(v_ids) x(id) where w.execution_id = x.id;
    delete from ff_suspension s using unnest(v_ids) x(id) where s.execution_id = x.id;
    delete from ff_attempt a using unnest(v_ids) x(id) where a.execution_id = x.id;
    delete from ff_claim_grant g using unnest(v_ids) x(id) where g.execution_id = x.id;
    delete from ff_exec_input i using unnest(v_ids) x(id) where i.execution_id = x.id;
    delete from ff_exec_core c using unnest(v_ids) x(id) where c.execution_id = x.id;
    errors := 0;
    more := processed = p_limit and p_limit > 0;
end
$$;

comment on function ff_trim_retention(bigint, text, text, int) is
$$Deletes executions that ended long enough ago, with everything that hangs off them: policy.retention_ms if they have one,
else p_retention_ms. A flow goes as a whole, when nothing in it lives and the longest of its members' times has passed, and
counts one; not when p_lane_id is given. Oldest first, at most p_limit per call; more says whether to call again. Events and idempotency keys
stay: they have times of their own.

Errors: invalid_input, invalid_lane_id$$;
