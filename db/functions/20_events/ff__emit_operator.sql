-- An operator event that belongs to no execution. Locks: ff_event_log, before it asks for the generation: there is no row
-- of an entity that a rebase would have to wait for.
create or replace function ff__emit_operator(p_event_type text, p_now_ms bigint, p_details jsonb) returns void
language plpgsql volatile
as $$
begin
    lock table ff_event_log in row exclusive mode;
    perform ff__emit_other(ff__event_gate('operator', p_event_type), 'operator', p_event_type, p_now_ms,
                           pg_current_xact_id()::text::bigint, p_details => p_details);
end
$$;
