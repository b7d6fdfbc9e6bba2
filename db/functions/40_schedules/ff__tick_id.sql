-- The execution of a tick, always the same: in v7 layout like minted ids, random only in looks. So a tick has at most
-- one execution, whatever happens to its schedule.
create or replace function ff__tick_id(p_schedule_id text, p_fire_at_ms bigint) returns uuid
language sql immutable
as $$
    select overlay(overlay(
               (lpad(to_hex(p_fire_at_ms & 281474976710655), 12, '0')
                || substr(encode(sha256(convert_to(p_fire_at_ms || ' ' || p_schedule_id, 'UTF8')), 'hex'), 1, 20))
               placing '7' from 13) placing '8' from 17)::uuid
$$;
