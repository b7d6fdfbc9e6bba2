-- Locks as ff_claim. Not replayable: if the reply is lost, the grant expires.
create or replace function ff_claim_for_worker(
    p_lane_id text,
    p_worker_id text,
    p_worker_instance_id text,
    p_capabilities text[] default '{}',
    p_grant_ttl_ms bigint default 5000,
    p_namespace text default null
) returns table (grant_id uuid, kind text, execution_id text, lane_id text, expires_at_ms bigint)
language plpgsql volatile security definer rows 1
as $$
declare
    v_capabilities text[];
    e ff_exec;
    g ff_claim_grant;
begin
    v_capabilities := ff__check_claim(p_worker_id, p_worker_instance_id, p_capabilities, 'p_grant_ttl_ms',
                                      p_grant_ttl_ms, p_namespace);
    e := ff__open(((ff__pick(p_lane_id, v_capabilities, p_namespace, 1, p_grant_ttl_ms)).ids)[1]);
    if e.execution_id is null then
        return;
    end if;
    g := ff__write_grant(e, p_worker_id, p_worker_instance_id, v_capabilities, p_grant_ttl_ms);
    return query select g.grant_id, g.kind, ff__wire_id(e.partition_key, e.execution_id), g.lane_id, g.expires_at_ms;
end
$$;

comment on function ff_claim_for_worker(text, text, text, text[], bigint, text) is
$$Picks the next execution of a lane as ff_claim does, and reserves it for a worker instead of leasing it. The worker
redeems the grant with ff_claim_from_grant before expires_at_ms; an expired grant has no effect. No row: no work.

Rows: at most one
Outcomes: kind = claim | resume | reclaim
Errors: invalid_input, invalid_lane_id, invalid_capabilities$$;
-- grant: ff_worker, ff_admin
