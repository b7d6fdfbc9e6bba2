-- An operator event that belongs to no execution. Locks: ff_event, before it asks for the generation: there is no row of
-- an entity that a rebase would have to wait for.
create or replace function ff__say_operator(p_event_type text, p_now_ms bigint, p_details jsonb) returns void
language plpgsql volatile
as $$
declare
    v_gen int;
begin
    lock table ff_event in row exclusive mode;
    v_gen := ff__event_gate('operator', p_event_type);
    if v_gen is not null then
        insert into ff_event (family, event_type, gen, ord, occurred_at_ms, details)
        values ('operator', p_event_type, v_gen, pg_current_xact_id()::text::bigint, p_now_ms, p_details);
    end if;
end
$$;
