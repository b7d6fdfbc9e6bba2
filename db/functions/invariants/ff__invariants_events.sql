-- Rules of the event outbox that must hold at every commit; each branch returns the rows that break one.
create or replace function ff__invariants_events() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select v.rule, ff__wire_id(x.partition_key, x.execution_id),
           case v.rule
               when 'event_order' then
                   format('event %s has ord %s, below ord %s of the one before', x.event_id, x.ord, x.before)
               when 'event_last_ord' then format('last_event_ord is %s, an event has ord %s', x.last_event_ord, x.ord)
               when 'event_namespace' then format('event %s has namespace %s', x.event_id, x.namespace)
           end
      from (select y.*, e.last_event_ord,
                   concat_ws(' ',
                       case when y.ord < y.before then 'event_order' end,
                       case when y.gen = (select g.gen from ff_event_generation g where g.id)
                                 and y.ord > e.last_event_ord
                            then 'event_last_ord' end,
                       case when e.execution_id is not null and y.namespace is distinct from e.namespace
                            then 'event_namespace' end) as broken
              from (select z.execution_id, z.partition_key, z.event_id, z.gen, z.ord, z.namespace,
                           lag(z.ord) over (partition by z.gen, z.execution_id order by z.event_id) as before
                      from ff_event z where z.execution_id is not null) y
              left join ff_execution e on e.execution_id = y.execution_id offset 0) x
     cross join lateral string_to_table(x.broken, ' ') v(rule)
     where x.broken <> ''
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
    select 'event_mirrors', f.family,
           format('muted %s, notify %s, but emitters read %s, %s', f.muted, f.notify, g.muted, g.notified)
      from ff_event_family f join ff_event_generation g on g.id
     where (f.notify = 'commit') <> (f.family = any (g.notified))
        or exists (select from unnest(ff__event_types(f.family)) t(type)
                    where (t.type = any (f.muted) or '*' = any (f.muted))
                          <> (f.family || '/' || t.type = any (g.muted)))
    union all
    select 'event_words', x.event_id::text, format('%s/%s', x.family, x.event_type)
      from ff_event x
      left join (select f.family, ff__event_types(f.family) as types from ff_event_family f offset 0) t
                on t.family = x.family
     where t.types is null or x.event_type <> all (t.types)
    union all
    -- Rows that ff__event_rows would not find, or that readers would split into other events.
    select 'event_batch', l.event_id::text,
           format('size %s, %s ids from %s to %s, stored as %s to %s, length class %s', l.size, n.ids, n.first_ms,
                  n.last_ms, (l.batch).first_id_ms, (l.batch).last_id_ms, (l.batch).span)
      from ff_event_log l
     cross join lateral (
           select count(*) as ids, min(i.ms) as first_ms, max(i.ms) as last_ms
             from unnest((l.batch).execution_ids) u(id)
            cross join lateral (
                  select ('x' || left(u.id::text, 8) || substr(u.id::text, 10, 4))::bit(48)::bigint as ms) i) n
     where (l.size is not null or (l.batch).execution_ids is not null)
       and ((l.size, n.first_ms, n.last_ms) is distinct from
                (n.ids, (l.batch).first_id_ms, (l.batch).last_id_ms)
            or n.last_ms - n.first_ms > 1000 * 16 ^ (l.batch).span
            or exists (select from unnest(array[
                           cardinality((l.batch).attempt_indexes), cardinality((l.batch).flow_ids),
                           cardinality((l.batch).lane_ids), cardinality((l.batch).namespaces),
                           cardinality((l.batch).tag_sets), cardinality((l.batch).lease_ids),
                           cardinality((l.batch).lease_epochs)]) c(values) where c.values <> l.size))
    union all
    select 'event_id_unique', x.event_id::text, format('%s events have this id', count(*))
      from ff_event x group by x.event_id having count(*) > 1
    union all
    select 'event_trimmed', x.event_id::text, format('is kept before the end of the trimmed part of %s', x.family)
      from ff_event x join ff_event_family f on f.family = x.family
     where (x.gen, x.ord, x.event_id) <= (f.trimmed_gen, f.trimmed_ord, f.trimmed_event_id)
    union all
    select 'event_generation', x.gen::text, format('%s events of a generation that has not begun', count(*))
      from ff_event x join ff_event_generation g on g.id and x.gen > g.gen group by x.gen;
end
$$;
