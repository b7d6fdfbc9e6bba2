-- The live grant on an execution, if this worker holds it; a row of NULLs if there is none. Errors:
-- grant_already_exists (a live one of somebody else; DETAIL tells its expiry, not its id).
create or replace function ff__own_grant(e ff_exec, p_worker_id text, p_worker_instance_id text) returns ff_claim_grant
language plpgsql stable
as $$
declare
    g ff_claim_grant;
begin
    select x.* into g from ff_claim_grant x where x.execution_id = e.execution_id and x.expires_at_ms > e.now_ms;
    if found and (g.worker_id, g.worker_instance_id) is distinct from (p_worker_id, p_worker_instance_id) then
        perform ff__raise('grant_already_exists', 'another worker holds a grant for this execution',
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'expires_at_ms', g.expires_at_ms));
    end if;
    return g;
end
$$;
