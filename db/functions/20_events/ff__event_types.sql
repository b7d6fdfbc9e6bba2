-- The types of events that a family knows; NULL for an unknown family.
create or replace function ff__event_types(p_family text) returns text[]
language sql immutable parallel safe
as $$
    select case p_family
        when 'completion' then '{success,failed,cancelled,expired,skipped}'::text[]
        when 'lease' then '{acquired,reclaimed,renewed,released,expired,revoked}'::text[]
        when 'suspension' then '{suspended,already_satisfied,resumed,timed_out,escalated,waitpoint_closed}'::text[]
        when 'signal' then '{delivered}'::text[]
        when 'operator' then '{overridden,cancelled,lease_revoked,priority_changed,replayed,resumed,lane_state_changed,flow_cancel_requested,approval_delivered,suspension_escalated,hmac_seeded,hmac_rotated,waitpoint_reminted}'::text[]
        when 'worker' then '{registered,marked_dead,ttl_swept}'::text[]
        when 'flow' then '{created,started,reopened,completed,failed,cancel_requested}'::text[] end
$$;
