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
        -- An id that no execution can have has no events; NULL would mean all.
        v_id := coalesce(ff__execution_uuid(p_execution_id), '00000000-0000-0000-0000-000000000000');
    end if;
    v_gen := ff__event_generation();
    v_after := ff__event_start(p_family, p_after, v_gen, v_horizon);
    if p_limit = 0 then
        return;
    elsif num_nonnulls(p_namespace, p_tags, p_event_types, p_partition) = 0 then
        v_scan := least(p_limit, p_max_scan);
    end if;

    -- The scan stops when the page is full: a CTE is read only as far as somebody asks.
    return query
    with scanned as materialized (
        select y.*, row_number() over () as n
          from (select x.* from ff__scan_families(p_family, v_after.gen, v_after.ord, v_after.event_id, v_gen, v_horizon,
                                                  v_scan) x
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
           m.attempt_index, m.lease_id, m.lease_epoch, m.worker_id, m.worker_instance_id, m.suspension_id, m.waitpoint_id,
           m.signal_id, m.source_type, m.source_identity, m.outcome, m.effect, m.reason, m.details
      from (select m.* from matched m order by m.n) m
    union all
    -- How far it got: a full page to its last row, a full scan to the last row looked at, else to the horizon.
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
$$Events in their one order, strictly after p_after: a cursor, NULL for the oldest that are kept, or 'now'. What it returns
is complete: no event can appear later before a cursor that was read, so a reader that goes on from its last cursor misses
none and sees none twice. Running write transactions hold newer events back, see ff_event_lag.
p_family: completion, lease, suspension, signal, operator, worker, flow; NULL for all. The filters are AND-ed; p_tags must
be contained in the event's tags. At most p_limit rows (up to 10000) of at most p_max_scan looked at (up to 1000000);
with p_watermark a last row of event_type watermark carries the cursor reached, whatever the filters let through; its
details say whether that is the end for now (at_horizon).

Nullable: family, event_id, execution_id, flow_id, lane_id, namespace, tags, occurred_at_ms, attempt_index, lease_id, lease_epoch, worker_id, worker_instance_id, suspension_id, waitpoint_id, signal_id, source_type, source_identity, outcome, effect, reason, details
Errors: invalid_input, invalid_execution_id, invalid_cursor, cursor_expired, event_generation_stale$$;
