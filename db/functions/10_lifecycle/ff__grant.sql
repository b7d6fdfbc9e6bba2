-- Writes a grant; an expired one is overwritten. The execution's row says so too (reserved_until_ms): claims look there.
create or replace function ff__grant(
    e ff_exec, p_worker_id text, p_worker_instance_id text, p_capabilities text[], p_grant_ttl_ms bigint,
    p_admission_summary text default null
) returns ff_claim_grant
language plpgsql volatile
as $$
declare
    g ff_claim_grant;
begin
    g.execution_id := e.execution_id;
    g.grant_id := ff__mint_id(e.now_ms, e.partition_key);
    g.issued_at_ms := e.now_ms;
    g.expires_at_ms := e.now_ms + p_grant_ttl_ms;
    g.kind := case when e.lifecycle_phase = 'active' then 'reclaim'
                   when e.attempt_state = 'attempt_interrupted' then 'resume' else 'claim' end;
    g.worker_id := p_worker_id;
    g.worker_instance_id := p_worker_instance_id;
    g.lane_id := e.lane_id;
    g.capabilities := p_capabilities;
    g.admission_summary := p_admission_summary;
    insert into ff_claim_grant select g.*
    on conflict on constraint ff_claim_grant_pkey do update set
        grant_id = excluded.grant_id, issued_at_ms = excluded.issued_at_ms, expires_at_ms = excluded.expires_at_ms,
        kind = excluded.kind, worker_id = excluded.worker_id, worker_instance_id = excluded.worker_instance_id,
        lane_id = excluded.lane_id, capabilities = excluded.capabilities,
        admission_summary = excluded.admission_summary;
    update ff_exec_core c set reserved_until_ms = g.expires_at_ms where c.execution_id = e.execution_id;
    return g;
end
$$;
