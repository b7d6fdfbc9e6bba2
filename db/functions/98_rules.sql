-- What a table takes from functions: generated columns and checks that call them. Added once, after the functions.
do $rules$
begin
    if not exists (select from pg_attribute a
                    where a.attrelid = 'ff_exec_core'::regclass and a.attname = 'public_state' and not a.attisdropped) then
        alter table ff_exec_core
            add column public_state text not null generated always as (
                ff__public_state(lifecycle_phase, eligibility_state, terminal_outcome, attempt_state)) stored;
    end if;
    if not exists (select from pg_constraint c
                    where c.conrelid = 'ff_exec_core'::regclass and c.conname = 'ff_exec_core_legal_vector') then
        alter table ff_exec_core
            add constraint ff_exec_core_legal_vector check (
                ff__legal_vector(lifecycle_phase, ownership_state, eligibility_state, blocking_reason,
                                 terminal_outcome, attempt_state, total_attempt_count));
    end if;
end
$rules$;
