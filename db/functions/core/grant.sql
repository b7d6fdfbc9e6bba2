-- Writes a grant, or overwrites an expired one. Also marks the execution's row as granted, which claims check, and the
-- lease of a crashed execution as expired, but keeps its slot for the grant.
create or replace function ff__write_grant(
    e ff_exec, p_worker_id text, p_worker_instance_id text, p_capabilities text[], p_grant_ttl_ms bigint,
    p_admission_summary text default null
) returns ff_claim_grant
language plpgsql volatile
as $$
declare
    g ff_claim_grant;
begin
    if e.state = 'leased' then
        e.limited := false; -- no other execution is unparked
        perform ff__mark_expired(e);
    end if;
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
    update ff_execution c set granted = true, ready_in = null, due_at_ms = g.expires_at_ms
     where c.execution_id = e.execution_id;
    return g;
end
$$;

-- Deletes the grant of a locked execution, which becomes claimable again. A leased row keeps its due time.
create or replace function ff__delete_grant(p_execution_id uuid) returns void
language plpgsql volatile
as $$
begin
    delete from ff_claim_grant g where g.execution_id = p_execution_id;
    update ff_execution c
       set granted = false,
           due_at_ms = case when c.state = 'leased' then c.lease_expires_at_ms
                            when c.state in ('quota', 'quota_retry', 'quota_replay', 'quota_resume', 'budget',
                                             'budget_retry', 'budget_replay', 'budget_resume') then c.due_at_ms
                            when c.state in ('delayed', 'delayed_replay', 'delayed_resume', 'backoff_retry',
                                             'resume_delay_resume') then c.delay_until_ms end,
           ready_in = case when c.state in ('ready', 'ready_retry', 'ready_replay', 'ready_resume', 'lease_expired',
                                            'lease_revoked') and not ff__flow_building(c.flow_id)
                           then ff__ready_queue(c.queue_id, c.limited) end
     where c.execution_id = p_execution_id and c.granted;
end
$$;
