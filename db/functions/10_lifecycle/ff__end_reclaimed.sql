-- The attempt of a lapsed or revoked lease is over: somebody else will start the next one.
create or replace function ff__end_reclaimed(e ff_exec) returns ff_exec
language plpgsql volatile
as $$
begin
    return ff__end_attempt(e, 'reclaim', 'interrupted_reclaimed', 'interrupted_reclaimed',
                           case e.ownership_state when 'lease_revoked' then 'lease_revoked' else 'lease_expired' end,
                           'infra_crash', 'infra_crash');
end
$$;
