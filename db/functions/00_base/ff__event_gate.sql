-- Opens the outbox for one event that is not an execution's: the current generation, or NULL when its type is muted.
-- Rings if the family notifies at commit.
create or replace function ff__event_gate(p_family text, p_event_type text) returns int
language sql volatile
as $$
    select f.gen
      from ff_event_family f
     where f.family = p_family and p_event_type <> all (f.muted) and '*' <> all (f.muted)
       and (f.notify <> 'commit' or ff__ring(f.family))
$$;
