-- Rules of schedules that must hold at every commit; each branch returns the rows that break one. Rules on
-- a single row are constraints of the table.
create or replace function ff__invariants_schedules() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select 'schedule_next', s.schedule_id, format('next tick %s, last tick %s, from %s, before %s', s.next_fire_at_ms,
                                                  s.last_fire_at_ms, s.first_at_ms, s.end_at_ms)
      from ff_schedule s
     where s.next_fire_at_ms <= s.last_fire_at_ms or s.next_fire_at_ms < s.first_at_ms
        or s.next_fire_at_ms >= s.end_at_ms
    union all
    select 'schedule_ended', s.schedule_id, 'it has no next tick and no end'
      from ff_schedule s where s.next_fire_at_ms is null and s.end_at_ms is null
    union all
    select 'schedule_fired', s.schedule_id, format('%s executions, last tick %s', s.fire_count, s.last_fire_at_ms)
      from ff_schedule s
     where num_nulls(s.last_fire_at_ms, s.last_fired_at_ms, s.last_execution_id)
           <> case when s.fire_count = 0 then 3 else 0 end
        or s.last_execution_id <> ff__fire_id(s.schedule_id, s.last_fire_at_ms)
    union all
    select 'schedule_error', s.schedule_id, format('%s failures, the last at %s', s.error_count, s.last_error_at_ms)
      from ff_schedule s
     where num_nulls(s.last_error, s.last_error_at_ms) <> case when s.error_count = 0 then 2 else 0 end
    union all
    select 'schedule_lane', s.schedule_id, s.lane_id
      from ff_schedule s where not exists (select from ff_lane_registry l where l.lane_id = s.lane_id);
end
$$;
