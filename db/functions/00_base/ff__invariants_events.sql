-- Rules of the event outbox that must hold at every commit; each branch returns the rows that break one.
create or replace function ff__invariants_events() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select 'event_order', ff__wire_id(v.partition_key, v.execution_id),
           format('event %s has ord %s, below ord %s of an earlier event', v.event_id, v.ord, v.highest)
      from (select x.execution_id, x.partition_key, x.event_id, x.ord,
                   max(x.ord) over (partition by x.gen, x.execution_id order by x.event_id
                                    rows between unbounded preceding and 1 preceding) as highest
              from ff_event x where x.execution_id is not null) v
     where v.ord < v.highest
    union all
    select 'flow_event_order', v.flow_id::text,
           format('event %s has ord %s, below ord %s of an earlier event', v.event_id, v.ord, v.highest)
      from (select x.flow_id, x.event_id, x.ord,
                   max(x.ord) over (partition by x.gen, x.flow_id order by x.event_id
                                    rows between unbounded preceding and 1 preceding) as highest
              from ff_event x where x.execution_id is null and x.flow_id is not null) v
     where v.ord < v.highest
    union all
    select 'flow_event_last_ord', f.flow_id::text,
           format('last_event_ord is %s, an event has ord %s', f.last_event_ord, max(x.ord))
      from ff_flow_core f
      join ff_event x on x.flow_id = f.flow_id and x.execution_id is null
      join ff_event_generation g on g.gen = x.gen
     group by f.flow_id, f.last_event_ord
    having max(x.ord) > f.last_event_ord
    union all
    select 'event_last_ord', ff__wire_id(e.partition_key, e.execution_id),
           format('last_event_ord is %s, an event has ord %s', e.last_event_ord, max(x.ord))
      from ff_exec_core e
      join ff_event x on x.execution_id = e.execution_id
      join ff_event_generation g on g.gen = x.gen
     group by e.partition_key, e.execution_id, e.last_event_ord
    having max(x.ord) > e.last_event_ord
    union all
    select 'event_namespace', ff__wire_id(e.partition_key, e.execution_id),
           format('event %s has namespace %s', x.event_id, x.namespace)
      from ff_exec_core e join ff_event x on x.execution_id = e.execution_id
     where x.namespace is distinct from e.namespace
    union all
    select 'event_mirrors', f.family, format('gen %s of %s, plain gate %s', f.gen, g.gen, g.plain)
      from ff_event_family f join ff_event_generation g on g.id
     where f.gen <> g.gen
        or (g.plain and f.family in ('lease', 'completion') and (f.muted <> '{}' or f.notify = 'commit'))
    union all
    select 'event_words', x.event_id::text, format('%s/%s', x.family, x.event_type)
      from ff_event x where x.event_type <> all (coalesce(ff__event_types(x.family), '{}'))
    union all
    select 'event_id_unique', x.event_id::text, format('%s events have this id', count(*))
      from ff_event x group by x.event_id having count(*) > 1
    union all
    select 'event_flow_order', v.flow_id::text,
           format('event %s has ord %s, below ord %s of an earlier event', v.event_id, v.ord, v.highest)
      from (select x.flow_id, x.event_id, x.ord,
                   max(x.ord) over (partition by x.gen, x.flow_id order by x.event_id
                                    rows between unbounded preceding and 1 preceding) as highest
              from ff_event x where x.execution_id is null and x.flow_id is not null) v
     where v.ord < v.highest
    union all
    select 'event_trimmed', x.event_id::text, format('is kept before the end of the trimmed part of %s', x.family)
      from ff_event x join ff_event_family f on f.family = x.family
     where (x.gen, x.ord, x.event_id) <= (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id)
    union all
    select 'event_generation', x.gen::text, format('%s events of a generation that has not begun', count(*))
      from ff_event x join ff_event_generation g on g.id and x.gen > g.gen group by x.gen;
end
$$;
