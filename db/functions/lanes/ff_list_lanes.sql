create or replace function ff_list_lanes(p_after text default null, p_limit int default 100)
returns table (
    lane_id text,
    state text,
    state_reason text,
    state_changed_at_ms bigint,
    registered_at_ms bigint,
    registered_by text
)
language plpgsql stable security definer
as $$
begin
    perform ff__check_limit(p_limit);
    return query
        select l.lane_id, l.state, l.state_reason, l.state_changed_at_ms, l.registered_at_ms, l.registered_by
          from ff_lane_registry l
         where p_after is null or l.lane_id > p_after
         order by l.lane_id limit p_limit;
end
$$;

comment on function ff_list_lanes(text, int) is
$$The lanes, ordered by id. p_after: the last lane_id read.

Outcomes: state = active | paused | draining | disabled
Nullable: state_reason
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
