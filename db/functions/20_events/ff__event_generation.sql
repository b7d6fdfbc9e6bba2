-- The current generation of the event order. Errors: event_generation_stale, when the order was counted in another
-- cluster: the database was restored.
create or replace function ff__event_generation() returns int
language plpgsql stable
as $$
declare
    v_gen int;
    v_recorded bigint;
    v_actual bigint;
begin
    select g.gen, g.system_identifier, c.system_identifier into v_gen, v_recorded, v_actual
      from ff_event_generation g, pg_control_system() c where g.id;
    if v_recorded <> v_actual then
        perform ff__raise('event_generation_stale',
                          'the events were written in another cluster: this database was restored',
                          jsonb_build_object('gen', v_gen, 'recorded_system_identifier', v_recorded,
                                             'system_identifier', v_actual));
    end if;
    return v_gen;
end
$$;
