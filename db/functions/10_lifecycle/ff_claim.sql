-- Locks: the row it picks, due rows of the lane, the quota policy of the row if it has one, all with skip locked: it never
-- waits. Not replayable: a claim whose answer was lost runs into its lease's end and is reclaimed.
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
declare
    v_capabilities text[];
    e ff_exec;
begin
    v_capabilities := ff__check_claim(p_worker_id, p_worker_instance_id, p_capabilities, 'p_lease_ttl_ms', p_lease_ttl_ms,
                                      p_namespace);
    e := ff__pick(p_lane_id, v_capabilities, p_namespace);
    if e.execution_id is null and ff__unblock(p_lane_id) then
        e := ff__pick(p_lane_id, v_capabilities, p_namespace);
    end if;
    if e.execution_id is null then
        perform ff__arm_lane(p_lane_id);
        return;
    end if;
    e := ff__lease(e, p_worker_id, p_worker_instance_id, p_lease_ttl_ms);
    return query select x.* from ff__claimed(e) x;
end
$$;

comment on function ff_claim(text, text, text, text[], bigint, text) is
$$Takes the next execution of a lane under a lease: highest priority first, then the oldest, among those whose required
capabilities the worker has. No row: there is no work, or the lane is unknown, paused or disabled.
Delays that ended, leases that ran out, passed deadlines and timeouts are honoured on the way; no background process
is needed. handle_kind: fresh (a new attempt), resumed (goes on with a paused attempt), reclaimed (a new attempt after
a crash). Keep the handle: the other worker verbs take it. Renew before lease_expires_at_ms.

Rows: at most one
Outcomes: handle_kind = fresh | resumed | reclaimed
Outcomes: attempt_type = initial | retry | reclaim | replay | fallback
Nullable: flow_id, payload, payload_encoding, attempt_timeout_at_ms, deadline_at_ms
Errors: invalid_input, invalid_lane_id, invalid_capabilities$$;
