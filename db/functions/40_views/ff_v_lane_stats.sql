-- What is on each lane. Ready work is counted in its index alone; what runs or is delayed, by its index and the rows.
-- The rate comes from the newest completions, about 10000 of them: if that many happened within a minute, from the
-- time that they cover. Asked for one lane, it reads that lane alone, and the same completions.
create or replace view ff_v_lane_stats as
with recent as materialized (
    select x.lane_id, x.lane_ids, x.occurred_at_ms, x.size
      from (select e.lane_id, (e.batch).lane_ids, e.occurred_at_ms, coalesce(e.size, 1) as size,
                   sum(coalesce(e.size, 1)) over (order by e.ord desc, e.event_id desc
                                                  rows between unbounded preceding and current row) as total
              from ff_event_log e
             where e.family = 'completion' and e.gen = (select g.gen from ff_event_generation g where g.id)
             order by e.ord desc, e.event_id desc limit 10000) x
     where x.total - x.size < 10000
), span as materialized (
    select t.ms as now_ms,
           case when (select sum(r.size) from recent r) >= 10000
                then greatest((select min(r.occurred_at_ms) from recent r), t.ms - 60000)
                else t.ms - 60000 end as from_ms
      from (select @extschema@.ff_now_ms() as ms) t
), rate as materialized (
    select coalesce(u.lane_id, r.lane_id) as lane_id, sum(case when u.lane_id is null then r.size else 1 end) as ended
      from span s
      join recent r on r.occurred_at_ms >= s.from_ms
      left join lateral unnest(r.lane_ids) u(lane_id) on true
     group by coalesce(u.lane_id, r.lane_id)
)
select l.lane_id,
       l.state,
       q.ready,
       to_timestamp(q.oldest_ms / 1000::float8) as oldest_ready_at,
       make_interval(secs => (s.now_ms - q.oldest_ms) / 1000::float8) as oldest_ready_age,
       d.running,
       d.lapsed,
       d.delayed,
       round(coalesce(r.ended, 0) * 60000::numeric / greatest(s.now_ms - s.from_ms, 1), 1) as ended_per_minute
  from ff_lane_registry l
 cross join span s
 cross join lateral (
        select count(*) as ready, min(c.created_at_ms) as oldest_ms
          from ff_exec_core c
         where c.lane_id = l.lane_id and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped) q
 cross join lateral (
        select count(*) filter (where c.ownership_state = 'leased' and c.lease_expires_at_ms > s.now_ms) as running,
               count(*) filter (where c.ownership_state = 'leased' and c.lease_expires_at_ms <= s.now_ms) as lapsed,
               count(*) filter (where c.ownership_state <> 'leased') as delayed
          from ff_exec_core c
         where c.lane_id = l.lane_id
           and (c.ownership_state = 'leased' or c.eligibility_state = 'not_eligible_until_time')) d
  left join rate r on r.lane_id = l.lane_id;

comment on view ff_v_lane_stats is
$$How much is on each lane, how old the oldest is, how fast it goes. One row per lane.
Fast: lane_id = .. reads that lane alone. Its time grows with what is ready, running and delayed, not with what has
ended.$$;
comment on column ff_v_lane_stats.lane_id is 'The name of the lane.';
comment on column ff_v_lane_stats.state is 'active, paused, draining or disabled.';
comment on column ff_v_lane_stats.ready is 'How many executions wait for a worker.';
comment on column ff_v_lane_stats.oldest_ready_at is 'When the oldest of those was submitted.';
comment on column ff_v_lane_stats.oldest_ready_age is 'How long ago that was.';
comment on column ff_v_lane_stats.running is 'How many are held by a worker under a live lease.';
comment on column ff_v_lane_stats.lapsed is
    'How many have a lease that ran out; the next claims on the lane take them over.';
comment on column ff_v_lane_stats.delayed is 'How many wait for a time: a delay, or the backoff of a retry.';
comment on column ff_v_lane_stats.ended_per_minute is
    'How many ended within the last minute; where 10000 on all lanes ended in less, the rate of that time.';
