-- The work crashed as often as its policy allows: it ends failed.
create or replace function ff__give_up_reclaims(e ff_exec_core) returns ff_exec_core
language plpgsql volatile
as $$
begin
    return ff__terminate(ff__end_reclaimed(e), 'failed', 'max_reclaims_exceeded', 'infra_crash');
end
$$;
