-- Locks: the row of ff_event_generation, then the family's (waits for them). The first holds a copy of the settings of
-- all families for emitters, so it is always written. A caller with an older snapshot gets 40001. Repeatable.
create or replace function ff_set_event_family(
    p_family text,
    p_muted text[] default null,
    p_notify text default null,
    p_retention_ms bigint default null,
    out family text,
    out muted text[],
    out notify text,
    out retention_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_unknown text;
begin
    perform ff__check_family(p_family);
    select coalesce(t.type, 'null') into v_unknown
      from unnest(p_muted) t(type)
     where t.type is null or t.type <> all (ff__event_types(p_family) || '*'::text) limit 1;
    if v_unknown is not null then
        perform ff__invalid('p_muted', 'has a type that this family does not know',
                            jsonb_build_object('event_type', left(v_unknown, 64)));
    elsif p_notify not in ('commit', 'tick', 'off') then
        perform ff__invalid('p_notify', 'must be commit, tick or off');
    end if;
    perform ff__check_time('p_retention_ms', p_retention_ms, p_from_ms => ff__now_ms());
    perform from ff_event_generation g where g.id for update;
    update ff_event_family f set
        muted = case when p_muted is null then f.muted
                     else array(select distinct t.type from unnest(p_muted) t(type) order by 1) end,
        notify = coalesce(p_notify, f.notify),
        retention_ms = coalesce(p_retention_ms, f.retention_ms)
     where f.family = p_family
    returning f.family, f.muted, f.notify, f.retention_ms
         into ff_set_event_family.family, ff_set_event_family.muted, ff_set_event_family.notify,
              ff_set_event_family.retention_ms;
    update ff_event_generation g set
        muted = array(select f.family || '/' || t.type
                        from ff_event_family f cross join unnest(ff__event_types(f.family)) t(type)
                       where t.type = any (f.muted) or '*' = any (f.muted) order by 1),
        notified = array(select f.family from ff_event_family f where f.notify = 'commit' order by 1)
     where g.id;
end
$$;

comment on function ff_set_event_family(text, text[], text, bigint) is
$$Changes the settings of one event family; NULL keeps the current value. p_muted: event types that are not written, '*'
for the whole family, '{}' for none; all else works the same. p_notify: when to notify: commit with every transaction
that wrote an event, tick with the next ff_tick, off never. p_retention_ms: how long ff_trim_events keeps events.

Outcomes: family = completion | lease | suspension | signal | operator | worker | flow
Outcomes: notify = commit | tick | off
Errors: invalid_input$$;
-- grant: ff_admin
