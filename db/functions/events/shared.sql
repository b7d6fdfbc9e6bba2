-- Checks the name of an event family. Errors: invalid_input.
create or replace function ff__check_family(p_family text) returns void
language plpgsql stable
as $$
begin
    if ff__event_types(p_family) is null then
        perform ff__invalid('p_family', 'must be completion, lease, suspension, signal, operator, worker or flow',
                            jsonb_build_object('family', left(p_family, 64)));
    end if;
end
$$;

-- Encodes a place in the order of events as a cursor; the inverse of ff__decode_event_cursor.
create or replace function ff__encode_event_cursor(p_gen int, p_ord bigint, p_event_id bigint) returns text
language sql immutable parallel safe
as $$ select 'e1.' || p_gen::text || '.' || p_ord::text || '.' || p_event_id::text $$;

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

-- The first ord that is not complete: every transaction that could still add an event below it has ended. A reader
-- calls this first, and reads events with the same snapshot or a later one. Running write transactions in any database
-- of the cluster hold it back, including prepared transactions.
create or replace function ff__event_horizon() returns bigint
language sql stable
as $$ select pg_snapshot_xmin(pg_current_snapshot())::text::bigint $$;

-- The event types of a family; NULL for an unknown family.
create or replace function ff__event_types(p_family text) returns text[]
language sql immutable parallel safe
as $$
    select case p_family
        when 'completion' then '{success,failed,cancelled,expired,skipped}'::text[]
        when 'lease' then '{acquired,reclaimed,renewed,released,expired,revoked}'::text[]
        when 'suspension' then '{suspended,already_satisfied,resumed,timed_out,escalated,waitpoint_closed}'::text[]
        when 'signal' then '{delivered}'::text[]
        when 'operator' then '{overridden,cancelled,lease_revoked,priority_changed,replayed,resumed,lane_state_changed,
                               flow_cancel_requested,approval_delivered,suspension_escalated,hmac_seeded,hmac_rotated,
                               waitpoint_reminted}'::text[]
        when 'worker' then '{registered,marked_dead,ttl_swept}'::text[]
        when 'flow' then '{created,started,reopened,completed,failed,cancel_requested}'::text[] end
$$;

-- The place after which no event of this family (NULL: of any family) has been trimmed.
create or replace function ff__oldest_event(p_family text) returns ff_event_place
language plpgsql stable
as $$
declare
    v ff_event_place;
begin
    select f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id into v
      from ff_event_family f where p_family is null or f.family = p_family
     order by f.trimmed_gen desc, f.trimmed_ord desc, f.trimmed_event_id desc limit 1;
    return v;
end
$$;
