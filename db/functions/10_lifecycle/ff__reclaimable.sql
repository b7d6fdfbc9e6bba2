-- Whether an execution is crashed work: its lease lapsed, marked or not, or was revoked.
create or replace function ff__reclaimable(e ff_exec) returns boolean
language plpgsql immutable
as $$
begin
    return e.lifecycle_phase = 'active' and (e.ownership_state <> 'leased' or e.lease_expires_at_ms <= e.now_ms);
end
$$;
