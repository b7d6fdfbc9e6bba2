-- Takes no lock. STABLE: the horizon and the events come from one snapshot.
create or replace function ff_read_events(
    p_family text default null,
    p_after text default null,
    p_limit int default 256,
    p_namespace text default null,
    p_tags jsonb default null,
    p_execution_id text default null,
    p_event_types text[] default null,
    p_partition int default null,
    p_max_scan int default 10000,
    p_watermark boolean default false
) returns table (
    cursor text,
    family text,
    event_id bigint,
    event_type text,
    execution_id text,
    flow_id uuid,
    lane_id text,
    namespace text,
    tags jsonb,
    occurred_at_ms bigint,
    attempt_index int,
    lease_id uuid,
    lease_epoch bigint,
    worker_id text,
    worker_instance_id text,
    suspension_id uuid,
    waitpoint_id uuid,
    signal_id uuid,
    source_type text,
    source_identity text,
    outcome text,
    effect text,
    reason text,
    details jsonb
)
language plpgsql stable security definer
as $$
declare
    v_gen int;
    v_horizon bigint := ff__event_horizon();
    v_id uuid;
    v_after ff_event_place;
    v_scan int := p_max_scan;
    v_unknown text;
begin
    if p_family is not null then
        perform ff__check_family(p_family);
    end if;
    perform ff__check_limit(p_limit, 10000);
    if p_max_scan is null or p_max_scan not between 1 and 1000000 then
        perform ff__invalid('p_max_scan', 'must be between 1 and 1000000', jsonb_build_object('value', p_max_scan));
    elsif p_watermark is null then
        perform ff__invalid('p_watermark', 'must not be null');
    elsif p_partition not between 0 and 255 then
        perform ff__invalid('p_partition', 'must be between 0 and 255', jsonb_build_object('value', p_partition));
    elsif jsonb_typeof(p_tags) <> 'object' then
        perform ff__invalid('p_tags', 'must be a json object');
    elsif p_namespace is not null then
        perform ff__check_text('p_namespace', p_namespace, 1, 64);
    end if;
    if p_event_types is not null then
        select coalesce(t.type, 'null') into v_unknown
          from unnest(p_event_types) t(type)
         where not exists (select from ff_event_family f
                            where (p_family is null or f.family = p_family)
                              and t.type = any (ff__event_types(f.family))) limit 1;
        if v_unknown is not null then
            perform ff__invalid('p_event_types', 'has a type that no event can have',
                                jsonb_build_object('event_type', left(v_unknown, 64)));
        end if;
    end if;
    if p_execution_id is not null then
        -- An id that no execution can have has no events; NULL would select all.
        v_id := coalesce(ff__execution_uuid(p_execution_id), '00000000-0000-0000-0000-000000000000');
    end if;
    v_gen := ff__event_generation();
    v_after := ff__event_start(p_family, p_after, v_gen, v_horizon);
    if p_limit = 0 then
        return;
    elsif num_nonnulls(p_namespace, p_tags, p_event_types, p_partition) = 0 then
        v_scan := least(p_limit, p_max_scan);
    end if;

    -- The scan stops when the page is full: a CTE is evaluated only as far as its rows are read.
    return query
    with scanned as materialized (
        select y.*, row_number() over () as n
          from (select x.* from ff__scan_families(p_family, v_after.gen, v_after.ord, v_after.event_id, v_gen,
                                                  v_horizon, v_scan) x
                 where v_id is null
                union all
                select x.* from ff__scan_execution(v_id, p_family, v_after.gen, v_after.ord, v_after.event_id, v_gen,
                                                   v_horizon, v_scan) x
                 where v_id is not null) y
    ), matched as materialized (
        select s.* from scanned s
         where (p_namespace is null or s.namespace = p_namespace)
           and (p_tags is null or s.tags @> p_tags)
           and (p_event_types is null or s.event_type = any (p_event_types))
           and (p_partition is null or s.partition_key = p_partition)
         limit p_limit
    )
    select ff__encode_event_cursor(m.gen, m.ord, m.event_id), m.family, m.event_id, m.event_type,
           ff__wire_id(m.partition_key, m.execution_id), m.flow_id, m.lane_id, m.namespace, m.tags, m.occurred_at_ms,
           m.attempt_index, m.lease_id, m.lease_epoch, m.worker_id, m.worker_instance_id, m.suspension_id,
           m.waitpoint_id, m.signal_id, m.source_type, m.source_identity, m.outcome, m.effect, m.reason, m.details
      from (select m.* from matched m order by m.n) m
    union all
    -- Cursor reached: last row of a full page, last row scanned if the scan limit was reached, else the horizon.
    select ff__encode_event_cursor(w.gen, w.ord, w.event_id), p_family, null, 'watermark', null, null, null, null, null,
           null, null, null, null, null, null, null, null, null, null, null, null, null, null,
           jsonb_build_object('at_horizon', w.at_horizon)
      from (select m.gen, m.ord, m.event_id, false as at_horizon from matched m
             where (select count(*) from matched) = p_limit and m.n = (select max(x.n) from matched x)
            union all
            select s.gen, s.ord, s.event_id, false from scanned s
             where (select count(*) from matched) < p_limit and s.n = v_scan
            union all
            select p.gen, p.ord, p.event_id, true
              from (values (v_gen, v_horizon, 0::bigint), (v_after.gen, v_after.ord, v_after.event_id))
                   p(gen, ord, event_id)
             order by 4, 1 desc, 2 desc, 3 desc limit 1) w
     where p_watermark;
end
$$;

comment on function ff_read_events(text, text, int, text, jsonb, text, text[], int, int, boolean) is
$$Events in one total order, strictly after p_after: a cursor, NULL for the oldest event that is kept, or 'now'. The
result is complete: no event can appear later before a cursor that was read, so a reader that continues from its last
cursor misses no event and reads none twice. Running write transactions hold back newer events, see ff_event_lag.
p_family: completion, lease, suspension, signal, operator, worker, flow; NULL for all. The filters are combined with
AND; p_tags must be contained in the event's tags. Returns at most p_limit rows (up to 10000) and scans at most
p_max_scan (up to 1000000). p_watermark adds a last row of event_type watermark with the cursor reached, regardless of
the filters; its details show whether that is the horizon (at_horizon).

Nullable: family, event_id, execution_id, flow_id, lane_id, namespace, tags, occurred_at_ms, attempt_index, lease_id
Nullable: lease_epoch, worker_id, worker_instance_id, suspension_id, waitpoint_id, signal_id, source_type
Nullable: source_identity, outcome, effect, reason, details
Errors: invalid_input, invalid_execution_id, invalid_cursor, cursor_expired, event_generation_stale$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin

-- Start position of a reader. p_after NULL: the oldest event that is kept; now: the horizon; else: after that cursor.
-- Errors: invalid_cursor, cursor_expired (DETAIL.oldest_cursor).
create or replace function ff__event_start(p_family text, p_after text, p_gen int, p_horizon bigint)
returns ff_event_place
language plpgsql stable
as $$
declare
    v ff_event_place;
    v_oldest ff_event_place;
begin
    if p_after is null then
        return (0, 0, 0)::ff_event_place;
    elsif p_after = 'now' then
        return (p_gen, p_horizon, 0)::ff_event_place;
    end if;
    v := ff__decode_event_cursor(p_after);
    v_oldest := ff__oldest_event(p_family);
    if v.gen > p_gen then
        perform ff__raise('invalid_cursor',
                          'the cursor is of a generation of events that this database has not reached',
                          jsonb_build_object('cursor', p_after, 'gen', p_gen));
    elsif (v.gen, v.ord, v.event_id) < (v_oldest.gen, v_oldest.ord, v_oldest.event_id) then
        perform ff__raise('cursor_expired', 'events after this cursor have been trimmed',
                          jsonb_build_object('family', p_family, 'cursor', p_after,
                                             'oldest_cursor', ff__encode_event_cursor(v_oldest.gen, v_oldest.ord,
                                                                                      v_oldest.event_id)));
    end if;
    return v;
end
$$;

-- Decodes a cursor; reads no row. Validates before casting. Errors: invalid_cursor.
create or replace function ff__decode_event_cursor(p_cursor text) returns ff_event_place
language plpgsql stable
as $$
declare
    v_part text[] := string_to_array(left(p_cursor, 80), '.');
begin
    if length(p_cursor) > 80
       or p_cursor !~ E'^e1\\.(0|[1-9][0-9]{0,9})\\.(0|[1-9][0-9]{0,18})\\.(0|[1-9][0-9]{0,18})$'
       or lpad(v_part[2], 10, '0') collate "C" > '2147483647'
       or lpad(v_part[3], 19, '0') collate "C" > '9223372036854775807'
       or lpad(v_part[4], 19, '0') collate "C" > '9223372036854775807'
    then
        perform ff__raise('invalid_cursor', 'not a cursor of the events',
                          jsonb_build_object('cursor', left(p_cursor, 80)));
    end if;
    return (v_part[2]::int, v_part[3]::bigint, v_part[4]::bigint)::ff_event_place;
end
$$;

-- Events of one family (NULL: of all) in order, strictly after a place and below (p_gen, p_horizon), at most p_limit.
-- Inlined into its caller: the indexes of the families are read in order, merged, and only as far as the caller reads.
-- Ends of leases are also stored in rows of the family completion. The events of one row are consecutive in the order;
-- the place can be within a row: event_id - 1 to event_id + 2046 are the ids of a row.
create or replace function ff__scan_families(
    p_family text, p_after_gen int, p_after_ord bigint, p_after_event_id bigint, p_gen int, p_horizon bigint,
    p_limit int
) returns setof ff_event
language sql stable
as $$
    select v.*
      from (select y.* from (
            (select x.* from ff_event_log x
             where x.family = 'completion'
               and (p_family is null or p_family = 'completion' or p_family = 'lease' and x.lease_type is not null)
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'lease' and (p_family is null or p_family = 'lease')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'suspension' and (p_family is null or p_family = 'suspension')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'signal' and (p_family is null or p_family = 'signal')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'operator' and (p_family is null or p_family = 'operator')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'worker' and (p_family is null or p_family = 'worker')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
            union all
            (select x.* from ff_event_log x
             where x.family = 'flow' and (p_family is null or p_family = 'flow')
               and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id - 2047)
               and (x.gen, x.ord) < (p_gen, p_horizon)
             order by x.gen, x.ord, x.event_id limit p_limit + 1)
        ) y order by y.gen, y.ord, y.event_id limit p_limit + 1) l
     cross join lateral ff__events_in(l::ff_event_log) v
     where (p_family is null or v.family = p_family)
       and (v.gen, v.ord, v.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
     limit p_limit
$$;

-- Events of one execution, of one family or of all, like ff__scan_families. They are few, so they are sorted.
create or replace function ff__scan_execution(
    p_execution_id uuid, p_family text, p_after_gen int, p_after_ord bigint, p_after_event_id bigint, p_gen int,
    p_horizon bigint, p_limit int
) returns setof ff_event
language sql stable
as $$
    select x.* from ff__event_rows(p_execution_id) l cross join lateral ff__events_in(l) x
     where x.execution_id = p_execution_id and (p_family is null or x.family = p_family)
       and (x.gen, x.ord, x.event_id) > (p_after_gen, p_after_ord, p_after_event_id)
       and (x.gen, x.ord) < (p_gen, p_horizon)
     order by x.gen, x.ord, x.event_id limit p_limit
$$;

-- The events that a row of ff_event_log holds, in order: the rows of the view ff_event. Plain SQL, so that it is
-- inlined.
create or replace function ff__events_in(l ff_event_log) returns setof ff_event
language sql stable
as $$
    select (l).ord, (l).event_id + 2 * x.n - h.ended::int, (l).occurred_at_ms, x.execution_id, x.flow_id,
           case when h.ended or (l).family = 'lease' then x.lease_id end, ((l).wait).suspension_id,
           ((l).wait).waitpoint_id, ((l).wait).signal_id,
           case when h.ended or (l).family = 'lease' then x.lease_epoch end, (l).gen, x.attempt_index,
           get_byte(uuid_send(coalesce(x.execution_id, x.flow_id)), 15)::smallint,
           case when h.ended then 'lease' else (l).family end,
           case when h.ended then (l).lease_type else (l).event_type end,
           x.lane_id, x.namespace, case when x.execution_id is null then x.tags else coalesce(x.tags, '{}') end,
           case when h.ended or (l).family in ('lease', 'worker') then (l).worker_id end,
           case when h.ended or (l).family in ('lease', 'worker') then (l).worker_instance_id end,
           ((l).wait).source_type, ((l).wait).source_identity,
           case when not h.ended and (l).family = 'completion' then (l).event_type end, ((l).wait).effect,
           case when h.ended then (l).lease_reason else (l).reason end, case when not h.ended then (l).details end
      from (select 0::bigint as n, (l).execution_id, (l).attempt_index, (l).flow_id, (l).lane_id, (l).namespace,
                   (l).tags, (l).lease_id, (l).lease_epoch
             where (l).size is null
            union all
            select u.n - 1, u.execution_id, coalesce(u.attempt_index, (l).attempt_index),
                   coalesce(u.flow_id, (l).flow_id), coalesce(u.lane_id, (l).lane_id),
                   coalesce(u.namespace, (l).namespace), u.tags, u.lease_id, coalesce(u.lease_epoch, (l).lease_epoch)
              from unnest(((l).batch).execution_ids, ((l).batch).attempt_indexes, ((l).batch).flow_ids,
                          ((l).batch).lane_ids, ((l).batch).namespaces, ((l).batch).tag_sets, ((l).batch).lease_ids,
                          ((l).batch).lease_epochs)
                   with ordinality
                   u(execution_id, attempt_index, flow_id, lane_id, namespace, tags, lease_id, lease_epoch, n)
             where (l).size is not null) x
     cross join (values (true), (false)) h(ended)
     where not h.ended or (l).family = 'completion' and (l).lease_type is not null
     order by x.n, h.ended desc
$$;
