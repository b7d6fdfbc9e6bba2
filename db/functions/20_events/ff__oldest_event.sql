-- The place after which nothing of this family (NULL: of any family) has been trimmed.
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
