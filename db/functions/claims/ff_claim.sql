-- Locks: the row it picks, and the quota policy of the row if any, with SKIP LOCKED: it never waits. Not replayable: if
-- the reply is lost, the lease expires and the execution is reclaimed.
create or replace function ff_claim(
    p_lane_id text,
    p_worker_id text,
    p_worker_instance_id text,
    p_capabilities text[] default '{}',
    p_lease_ttl_ms bigint default 30000,
    p_namespace text default null
) returns table (
    handle text,
    handle_kind text,
    execution_id text,
    namespace text,
    lane_id text,
    flow_id uuid,
    execution_kind text,
    payload bytea,
    payload_encoding text,
    tags jsonb,
    priority int,
    attempt_index int,
    attempt_id uuid,
    attempt_type text,
    lease_id uuid,
    lease_epoch bigint,
    lease_expires_at_ms bigint,
    attempt_timeout_at_ms bigint,
    deadline_at_ms bigint
)
language plpgsql volatile security definer rows 1
as $$
#variable_conflict use_column
declare
    v_queues int[];
    v_start bigint;
    v_due bigint;
    v_now bigint := ff__now_ms();
    v_ord bigint;
    v_partition smallint;
    v_id uuid;
    v_seed text;
begin
    p_capabilities := ff__check_claim(p_worker_id, p_worker_instance_id, p_capabilities, 'p_lease_ttl_ms',
                                      p_lease_ttl_ms, p_namespace);
    -- Fast path: one statement picks, locks and leases if there is a single queue without limits, nothing in it is due,
    -- and its head is a first attempt. ff__pick and ff__lease handle all cases with twice the instructions.
    select array_agg(q.queue_id), min(q.start_rank) filter (where not q.limited), min(ff__start_due(q, v_now))
      into v_queues, v_start, v_due
      from ff_lane_registry l join ff_queue q on q.lane_id = l.lane_id
     where l.lane_id = p_lane_id and l.state in ('active', 'draining')
       and (p_namespace is null or q.namespace = p_namespace) and q.required_capabilities <@ p_capabilities;
    if random() < 0.004 then
        perform ff__move_start(v_queues);
    end if;
    if cardinality(v_queues) = 1 and v_start is not null then
        v_seed := left(ff__mint_id(v_now, 0)::text, 34);
        update ff_execution c set
            state = 'leased', ready_in = null,
            due_at_ms = least(v_now + p_lease_ttl_ms, v_now + c.attempt_timeout_ms, c.deadline_at_ms),
            lease_expires_at_ms = least(v_now + p_lease_ttl_ms, v_now + c.attempt_timeout_ms, c.deadline_at_ms),
            attempt_timeout_at_ms = ff__time_after(v_now, c.attempt_timeout_ms),
            lease_id = (v_seed || lpad(to_hex(c.partition_key::int), 2, '0'))::uuid, lease_epoch = c.lease_epoch + 1,
            lease_ttl_ms = p_lease_ttl_ms, lease_acquired_at_ms = v_now, worker_id = p_worker_id,
            worker_instance_id = p_worker_instance_id,
            attempt_id = (v_seed || lpad(to_hex(c.partition_key::int), 2, '0'))::uuid,
            attempt_index = c.total_attempt_count,
            total_attempt_count = c.total_attempt_count + 1, attempt_type = 'initial', attempt_started_at_ms = v_now,
            started_at_ms = v_now, last_transition_at_ms = v_now, last_mutation_at_ms = v_now,
            last_event_ord = greatest(pg_current_xact_id()::text::bigint, c.last_event_ord)
         where c.ctid = (
                   select x.ctid from ff_execution x
                    where x.ready_in = v_queues[1] and x.rank >= v_start
                      and (x.flow_id is null
                           or coalesce((select f.claimable from ff_flow_core f where f.flow_id = x.flow_id), true))
                      and not exists (select from ff_execution d
                                       where d.queue_id = v_queues[1] and d.due_at_ms between v_due and v_now)
                      and not exists (select from ff_execution d where d.ready_in = -v_queues[1])
                    order by x.rank limit 1 for no key update of x skip locked)
           and c.state = 'ready' and (c.deadline_at_ms is null or c.deadline_at_ms > v_now)
        returning c.execution_id, c.partition_key, c.namespace, c.lane_id, c.flow_id, c.execution_kind, c.payload,
                  c.payload_encoding, c.tags, c.priority, c.attempt_index, c.attempt_id, c.lease_id, c.lease_epoch,
                  c.lease_expires_at_ms, c.attempt_timeout_at_ms, c.deadline_at_ms, c.last_event_ord
          into v_id, v_partition, namespace, lane_id, flow_id, execution_kind, payload, payload_encoding, tags,
               priority, attempt_index, attempt_id, lease_id, lease_epoch, lease_expires_at_ms, attempt_timeout_at_ms,
               deadline_at_ms, v_ord;
        if found then
            perform ff__emit_event('lease', 'acquired', null, v_now, v_ord, v_id, attempt_index, flow_id, lane_id,
                                   namespace, tags, lease_id, lease_epoch, p_worker_id, p_worker_instance_id);
            handle := ff__encode_handle(v_partition, v_id, attempt_index, lease_id, lease_epoch, attempt_id);
            handle_kind := 'fresh';
            attempt_type := 'initial';
            execution_id := ff__wire_id(v_partition, v_id);
            tags := coalesce(tags, '{}');
            return next;
            return;
        end if;
    end if;
    return query
        select x.*
          from ff__pick(p_lane_id, p_capabilities, p_namespace, 1) p
         cross join lateral ff__lease(p.ids, p_worker_id, p_worker_instance_id, p_lease_ttl_ms, ff__now_ms(), p.fresh) x
         where p.ids <> '{}';
end
$$;

comment on function ff_claim(text, text, text, text[], bigint, text) is
$$Takes the next execution of a lane under a lease: highest priority first, then the oldest, among those whose required
capabilities the worker has. No row: there is no work, or the lane is unknown, paused or disabled.
The claim applies ended delays, expired leases, deadlines and timeouts; no background process is needed.
handle_kind: fresh (a new attempt), resumed (continues a paused attempt), reclaimed (a new attempt after a crash).
The other worker functions take the handle. Renew the lease before lease_expires_at_ms.

Rows: at most one
Outcomes: handle_kind = fresh | resumed | reclaimed
Outcomes: attempt_type = initial | retry | reclaim | replay | fallback
Nullable: flow_id, payload, payload_encoding, attempt_timeout_at_ms, deadline_at_ms
Errors: invalid_input, invalid_lane_id, invalid_capabilities$$;
-- grant: ff_worker, ff_admin
