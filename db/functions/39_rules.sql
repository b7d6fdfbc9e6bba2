-- What a table takes from functions: generated columns that call them, and checks on those. Added once, after the
-- functions and before the views, which show them.
do $rules$
begin
    if not exists (select from pg_attribute a
                    where a.attrelid = 'ff_exec_core'::regclass and a.attname = 'public_state' and not a.attisdropped) then
        alter table ff_exec_core
            add column public_state text generated always as (
                ff__public_state(lifecycle_phase, ownership_state, eligibility_state, blocking_reason, terminal_outcome,
                                 attempt_state, total_attempt_count)) stored,
            add constraint ff_exec_core_legal_vector check (public_state is not null);
    end if;
end
$rules$;
