-- The work crashed as often as its policy allows: it ends failed.
create or replace function ff__give_up_reclaims(e ff_exec) returns void
language plpgsql volatile
as $$
begin
    perform ff__terminate(ff__end_reclaimed(e), 'failed', 'max_reclaims_exceeded', 'infra_crash');
end
$$;
