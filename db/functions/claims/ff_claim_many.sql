-- Locks: the rows it picks, and the quota policies of the rows, with SKIP LOCKED: it never waits. Not replayable.
create or replace function ff_claim_many(
    p_lane_id text,
    p_worker_id text,
    p_worker_instance_id text,
    p_limit int default 10,
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
language plpgsql volatile security definer
as $$
begin
    perform ff__check_limit(p_limit);
    p_capabilities := ff__check_claim(p_worker_id, p_worker_instance_id, p_capabilities, 'p_lease_ttl_ms',
                                      p_lease_ttl_ms, p_namespace);
    return query
        select x.*
          from ff__pick(p_lane_id, p_capabilities, p_namespace, p_limit) p
         cross join lateral ff__lease(p.ids, p_worker_id, p_worker_instance_id, p_lease_ttl_ms, p.now_ms, p.fresh) x
         where p.ids <> '{}';
end
$$;

comment on function ff_claim_many(text, text, text, int, text[], bigint, text) is
$$ff_claim for up to p_limit executions (at most 1000) in one call, in the order in which ff_claim returns them.

Outcomes: handle_kind = fresh | resumed | reclaimed
Outcomes: attempt_type = initial | retry | reclaim | replay | fallback
Nullable: flow_id, payload, payload_encoding, attempt_timeout_at_ms, deadline_at_ms
Errors: invalid_input, invalid_lane_id, invalid_capabilities$$;
-- grant: ff_worker, ff_admin
