-- Prepares one event that does not belong to an execution: returns the current generation, or NULL if the type is
-- muted. Notifies if the family notifies at commit. On a snapshot older than a rebase (REPEATABLE READ and stricter) it
-- fails with 40001: readers would miss an event of the old generation.
create or replace function ff__prepare_event(p_family text, p_event_type text) returns int
language plpgsql volatile
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from ff_event_generation g where g.id for share;
    end if;
    return (select g.gen
              from ff_event_generation g
             where p_family || '/' || p_event_type <> all (g.muted)
               and (p_family <> all (g.notified) or ff__notify_family(p_family)));
end
$$;

-- Emits an event of a worker.
create or replace function ff__emit_worker(
    p_event_type text, p_namespace text, p_worker_id text, p_worker_instance_id text, p_now_ms bigint, p_ord bigint,
    p_reason text default null
) returns void
language plpgsql volatile
as $$
begin
    perform ff__emit_other(ff__prepare_event('worker', p_event_type), 'worker', p_event_type, p_now_ms, p_ord, p_reason,
                           p_namespace => p_namespace, p_worker_id => p_worker_id,
                           p_worker_instance_id => p_worker_instance_id);
end
$$;

-- Emits an event of an execution, at the operation's time and ord, with the execution's current namespace and tags.
-- Lease events name the lease and worker in e. Returns e, with its tags.
create or replace function ff__emit(
    e ff_exec, p_family text, p_event_type text, p_reason text default null, p_details jsonb default null
) returns ff_exec
language plpgsql volatile
as $$
begin
    if p_family = 'lease' then
        perform ff__emit_event('lease', p_event_type, p_reason, e.now_ms, e.ord, e.execution_id,
                               e.current_attempt_index, e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'),
                               e.lease_id, e.lease_epoch, e.worker_id, e.worker_instance_id);
    else
        perform ff__emit_event(p_family, p_event_type, p_reason, e.now_ms, e.ord, e.execution_id,
                               e.current_attempt_index, e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'),
                               p_details => p_details);
    end if;
    return e;
end
$$;

-- The only statement that writes events of executions: one row of ff_event_log, for one execution, or with p_batch for
-- many (ff__emit_many). p_lease_type with the family completion: the same row is also the end of the lease. A muted
-- type is omitted, even if it is only one of the two; a family that notifies at commit notifies, except for a renewal.
-- p_tags: NULL for none. Returns the id of the event (of the first of many), NULL if it is muted.
create or replace function ff__emit_event(
    p_family text,
    p_event_type text,
    p_reason text,
    p_now_ms bigint,
    p_ord bigint,
    p_execution_id uuid,
    p_attempt_index int,
    p_flow_id uuid,
    p_lane_id text,
    p_namespace text,
    p_tags jsonb,
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_worker_id text default null,
    p_worker_instance_id text default null,
    p_lease_type text default null,
    p_lease_reason text default null,
    p_details jsonb default null,
    p_wait ff_event_wait default null,
    p_size int default null,
    p_batch ff_event_batch default null
) returns bigint
language plpgsql volatile
as $$
declare
    v_event_id bigint;
begin
    -- Columns in table order: otherwise the plan has an extra node, which costs 18000 instructions.
    insert into ff_event_log (
        ord, event_id, occurred_at_ms, execution_id, flow_id, lease_id, lease_epoch, gen, attempt_index, family,
        event_type, lease_type, lease_reason, reason, lane_id, namespace, worker_id, worker_instance_id, tags,
        details, wait, size, batch)
    select p_ord, nextval('ff_event_id_seq'), p_now_ms, p_execution_id, p_flow_id, p_lease_id, p_lease_epoch, g.gen,
           p_attempt_index, p_family, p_event_type,
           case when p_lease_type is not null and 'lease/' || p_lease_type <> all (g.muted)
                     and ('lease' <> all (g.notified) or ff__notify_family('lease')) then p_lease_type end,
           p_lease_reason, p_reason, p_lane_id, p_namespace, p_worker_id, p_worker_instance_id, p_tags, p_details,
           p_wait, p_size, p_batch
      from ff_event_generation g
     where p_family || '/' || p_event_type <> all (g.muted)
       and (p_family <> all (g.notified) or p_event_type = 'renewed' or ff__notify_family(p_family))
    returning event_id into v_event_id;
    if v_event_id is null and p_lease_type is not null then
        -- The completion is muted: write only the end of the lease.
        perform ff__emit_event('lease', p_lease_type, p_lease_reason, p_now_ms, p_ord, p_execution_id, p_attempt_index,
                               p_flow_id, p_lane_id, p_namespace, p_tags, p_lease_id, p_lease_epoch, p_worker_id,
                               p_worker_instance_id, p_size => p_size, p_batch => p_batch);
    end if;
    return v_event_id;
end
$$;

-- Emits the same event of many executions with the same ord and worker as one row: ff__emit_event with arrays, element
-- by element in their order. Values common to all are stored once. A single execution, and executions whose ids lie
-- more than twelve days apart, get their own rows: ff__event_rows would have to search too many. More than 1000 get
-- several rows. p_tag_sets, p_flow_ids: NULL elements for none. p_want_ids: returns the event ids, in the order of the
-- arrays; NULL if the type is muted.
create or replace function ff__emit_many(
    p_family text,
    p_event_type text,
    p_reason text,
    p_now_ms bigint,
    p_ord bigint,
    p_execution_ids uuid[],
    p_attempt_indexes int[],
    p_flow_ids uuid[],
    p_lane_ids text[],
    p_namespaces text[],
    p_tag_sets jsonb[],
    p_lease_ids uuid[] default null,
    p_lease_epochs bigint[] default null,
    p_worker_id text default null,
    p_worker_instance_id text default null,
    p_lease_type text default null,
    p_lease_reason text default null,
    p_want_ids boolean default false
) returns bigint[]
language plpgsql volatile
as $$
declare
    v_size int := cardinality(p_execution_ids);
    v_ids uuid[];
    v_first_ms bigint;
    v_last_ms bigint;
    v_step int;
    v_event_id bigint;
    v_event_ids bigint[];
    v_attempt boolean := coalesce(p_attempt_indexes[1] = all (p_attempt_indexes), false);
    v_epoch boolean := coalesce(p_lease_epochs[1] = all (p_lease_epochs), false);
    v_flow boolean := coalesce(p_flow_ids[1] = all (p_flow_ids), false);
    v_lane boolean := coalesce(p_lane_ids[1] = all (p_lane_ids), false);
    v_namespace boolean := coalesce(p_namespaces[1] = all (p_namespaces), false);
begin
    if v_size is null or v_size = 0 then
        return '{}'::bigint[];
    elsif v_size = 1 then
        v_event_id := ff__emit_event(
            p_family, p_event_type, p_reason, p_now_ms, p_ord, p_execution_ids[1], p_attempt_indexes[1], p_flow_ids[1],
            p_lane_ids[1], p_namespaces[1], p_tag_sets[1], p_lease_ids[1], p_lease_epochs[1], p_worker_id,
            p_worker_instance_id, p_lease_type, p_lease_reason);
        return array[v_event_id];
    end if;
    v_ids := array(select x.id from unnest(p_execution_ids) x(id) order by x.id);
    -- The first twelve hex digits of an id are its time.
    v_first_ms := ('x' || left(v_ids[1]::text, 8) || substr(v_ids[1]::text, 10, 4))::bit(48)::bigint;
    v_last_ms := ('x' || left(v_ids[v_size]::text, 8) || substr(v_ids[v_size]::text, 10, 4))::bit(48)::bigint;
    v_step := case when v_last_ms - v_first_ms > 1048576000 then 1 else 1000 end;
    if v_size > v_step then
        for n in 1..v_size by v_step loop
            v_event_ids := v_event_ids || ff__emit_many(
                p_family, p_event_type, p_reason, p_now_ms, p_ord, p_execution_ids[n:n + v_step - 1],
                p_attempt_indexes[n:n + v_step - 1], p_flow_ids[n:n + v_step - 1], p_lane_ids[n:n + v_step - 1],
                p_namespaces[n:n + v_step - 1], p_tag_sets[n:n + v_step - 1], p_lease_ids[n:n + v_step - 1],
                p_lease_epochs[n:n + v_step - 1], p_worker_id, p_worker_instance_id, p_lease_type, p_lease_reason,
                p_want_ids);
        end loop;
        return v_event_ids;
    end if;
    v_event_id := ff__emit_event(
        p_family, p_event_type, p_reason, p_now_ms, p_ord, null, case when v_attempt then p_attempt_indexes[1] end,
        case when v_flow then p_flow_ids[1] end, case when v_lane then p_lane_ids[1] end,
        case when v_namespace then p_namespaces[1] end, null, null, case when v_epoch then p_lease_epochs[1] end,
        p_worker_id, p_worker_instance_id, p_lease_type, p_lease_reason,
        p_size => v_size,
        p_batch => (
            case when v_last_ms - v_first_ms <= 1000 then 0 when v_last_ms - v_first_ms <= 16000 then 1
                 when v_last_ms - v_first_ms <= 256000 then 2 when v_last_ms - v_first_ms <= 4096000 then 3
                 when v_last_ms - v_first_ms <= 65536000 then 4 else 5 end,
            v_first_ms, v_last_ms, p_execution_ids, case when not v_attempt then p_attempt_indexes end,
            case when not v_flow and num_nonnulls(variadic p_flow_ids) > 0 then p_flow_ids end,
            case when not v_lane then p_lane_ids end, case when not v_namespace then p_namespaces end,
            case when num_nonnulls(variadic p_tag_sets) > 0 then p_tag_sets end, p_lease_ids,
            case when not v_epoch then p_lease_epochs end)::ff_event_batch);
    if p_want_ids and v_event_id is not null then
        return array(select v_event_id + 2 * n from generate_series(0, v_size - 1) n);
    end if;
    return null;
end
$$;

-- Emits an operator event that belongs to no execution. Locks ff_event_log before it reads the generation, since there
-- is no entity row that a rebase would wait for.
create or replace function ff__emit_operator(p_event_type text, p_now_ms bigint, p_details jsonb) returns void
language plpgsql volatile
as $$
begin
    lock table ff_event_log in row exclusive mode;
    perform ff__emit_other(ff__prepare_event('operator', p_event_type), 'operator', p_event_type, p_now_ms,
                           pg_current_xact_id()::text::bigint, p_details => p_details);
end
$$;

-- The only statement that writes events without an execution: of a flow, a lane, a worker, an operator. p_gen is the
-- result of ff__prepare_event: if NULL, nothing is written.
create or replace function ff__emit_other(
    p_gen int, p_family text, p_event_type text, p_now_ms bigint, p_ord bigint, p_reason text default null,
    p_details jsonb default null, p_namespace text default null, p_tags jsonb default null, p_flow_id uuid default null,
    p_lane_id text default null, p_worker_id text default null, p_worker_instance_id text default null
) returns void
language plpgsql volatile
as $$
begin
    if p_gen is not null then
        insert into ff_event_log (
            family, gen, ord, event_id, occurred_at_ms, event_type, reason, details, namespace, tags, flow_id, lane_id,
            worker_id, worker_instance_id)
        values (
            p_family, p_gen, p_ord, nextval('ff_event_id_seq'), p_now_ms, p_event_type, p_reason, p_details,
            p_namespace, p_tags, p_flow_id, p_lane_id, p_worker_id, p_worker_instance_id);
    end if;
end
$$;

-- The rows of ff_event_log that hold events of an execution: single rows by its id, rows with arrays by the times in
-- the ids. A row of length class s spans at most 1000 * 16 ^ s ms, so its last id is at most that much newer than the
-- id sought. Plain SQL, so that it is inlined.
create or replace function ff__event_rows(p_execution_id uuid) returns setof ff_event_log
language sql stable
as $$
    select l.* from ff_event_log l where l.execution_id = p_execution_id
    union all
    select r.*
      from (values (0, 1000), (1, 16000), (2, 256000), (3, 4096000), (4, 65536000), (5, 1048576000)) s(span, width)
     cross join (select ('x' || left(p_execution_id::text, 8) || substr(p_execution_id::text, 10, 4))::bit(48)::bigint
                     as ms offset 0) t
     cross join lateral (
           select l.* from ff_event_log l
            where l.size is not null and (l.batch).span = s.span and (l.batch).last_id_ms >= t.ms
              and (l.batch).last_id_ms <= t.ms + s.width and (l.batch).first_id_ms <= t.ms
              and p_execution_id = any ((l.batch).execution_ids)) r
$$;

-- ff__emit for suspensions: the event names suspension and waitpoint, and the signal if there is one.
create or replace function ff__emit_wait(
    e ff_exec,
    p_family text,
    p_event_type text,
    p_reason text,
    p_suspension_id uuid,
    p_waitpoint_id uuid,
    p_details jsonb default null,
    p_signal_id uuid default null,
    p_source_type text default null,
    p_source_identity text default null,
    p_effect text default null
) returns ff_exec
language plpgsql volatile
as $$
begin
    perform ff__emit_event(p_family, p_event_type, p_reason, e.now_ms, e.ord, e.execution_id, e.current_attempt_index,
                           e.flow_id, e.lane_id, e.namespace, nullif(e.tags, '{}'), p_details => p_details,
                           p_wait => (p_suspension_id, p_waitpoint_id, p_signal_id, p_source_type, p_source_identity,
                                      p_effect)::ff_event_wait);
    return e;
end
$$;

-- Emits an event of a flow that the caller has locked: family flow, or p_family, with the flow's namespace and tags.
-- Writes the flow's row: its position in the event order.
create or replace function ff__emit_flow(
    p_flow_id uuid, p_event_type text, p_now_ms bigint, p_reason text default null, p_details jsonb default null,
    p_family text default 'flow'
) returns void
language plpgsql volatile
as $$
declare
    v_gen int := ff__prepare_event(p_family, p_event_type);
    v_namespace text;
    v_tags jsonb;
    v_ord bigint;
begin
    if v_gen is null then
        return;
    end if;
    update ff_flow_core x
       set last_event_ord = greatest(pg_current_xact_id()::text::bigint, x.last_event_ord),
           last_mutation_at_ms = p_now_ms
     where x.flow_id = p_flow_id
    returning x.namespace, x.tags, x.last_event_ord into v_namespace, v_tags, v_ord;
    if found then
        perform ff__emit_other(v_gen, p_family, p_event_type, p_now_ms, v_ord, p_reason, p_details, v_namespace, v_tags,
                               p_flow_id);
    end if;
end
$$;
