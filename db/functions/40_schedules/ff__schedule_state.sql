-- The state of a schedule in one word.
create or replace function ff__schedule_state(s ff_schedule) returns text
language plpgsql immutable
as $$
begin
    return case when s.next_fire_at_ms is null then 'ended'
                when s.paused_at_ms is not null then 'paused'
                else 'active' end;
end
$$;
