-- The work crashed as often as its policy allows: it ends failed.
create or replace function ff__give_up_reclaims(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    perform ff__terminate(
        e, ff__end_attempt(e, 'reclaim', 'interrupted_reclaimed', null, null,
                           case e.ownership_state when 'lease_revoked' then 'lease_revoked' else 'lease_expired' end,
                           'infra_crash', 'infra_crash'),
        'failed', 'max_reclaims_exceeded', 'infra_crash');
end
$$;
