-- Executions per lane. Ready executions are counted by an index-only scan, and the oldest of each priority is found by
-- a probe: within a priority the index has them in order of creation. Running and delayed executions are read by their
-- index and the rows; parked ones have the end of time as due_at_ms. The rate is computed from the newest completions,
-- at most 10000: if a minute has more, from the time they cover. For one lane, only that lane and the same completions
-- are read.
create or replace view ff_v_lane_stats as
with recent as materialized (
    select e.lane_id, e.occurred_at_ms
      from ff_event_newest e
     where e.family = 'completion' and e.gen = (select g.gen from ff_event_generation g where g.id)
     order by e.gen desc, e.ord desc, e.event_id desc limit 10000
), span as materialized (
    select t.ms as now_ms,
           case when (select count(*) from recent) = 10000
                then greatest((select min(r.occurred_at_ms) from recent r), t.ms - 60000)
                else t.ms - 60000 end as from_ms
      from (select @extschema@.ff_now_ms() as ms) t
), rate as materialized (
    select r.lane_id, count(*) as ended
      from recent r, span s
     where r.occurred_at_ms >= s.from_ms
     group by r.lane_id
)
select l.lane_id,
       l.state,
       q.ready,
       to_timestamp(o.oldest_ms / 1000::float8) as oldest_ready_at,
       make_interval(secs => (s.now_ms - o.oldest_ms) / 1000::float8) as oldest_ready_age,
       d.running,
       d.lapsed,
       d.delayed,
       round(coalesce(r.ended, 0) * 60000::numeric / greatest(s.now_ms - s.from_ms, 1), 1) as ended_per_minute
  from ff_lane_registry l
 cross join span s
 cross join lateral (
        select coalesce(sum(n.ready), 0)::bigint as ready
          from ff_queue k
         cross join (values (1), (-1)) s(sign) -- see ff__ready_queue
         cross join lateral (select count(*) as ready from ff_execution c where c.ready_in = k.queue_id * s.sign) n
         where k.lane_id = l.lane_id) q
 cross join lateral (
        with recursive oldest as (
            select c.ready_in, c.rank, c.created_at_ms
              from ff_queue k
             cross join (values (1), (-1)) s(sign)
             cross join lateral (
                    select x.ready_in, x.rank, x.created_at_ms
                      from ff_execution x
                     where x.ready_in = k.queue_id * s.sign
                     order by x.rank limit 1) c
             where k.lane_id = l.lane_id
            union all
            select c.ready_in, c.rank, c.created_at_ms
              from oldest o
             cross join lateral (
                    select x.ready_in, x.rank, x.created_at_ms
                      from ff_execution x
                     where x.ready_in = o.ready_in and x.rank >= ((o.rank >> 49) + 1) << 49
                     order by x.rank limit 1) c)
        select min(o.created_at_ms) as oldest_ms from oldest o) o
 cross join lateral (
        select coalesce(sum(n.running), 0)::bigint as running, coalesce(sum(n.lapsed), 0)::bigint as lapsed,
               coalesce(sum(n.delayed), 0)::bigint as delayed
          from ff_queue k
         cross join lateral (
                select count(*) filter (where c.state = 'leased' and c.lease_expires_at_ms > s.now_ms) as running,
                       count(*) filter (where c.state = 'leased' and c.lease_expires_at_ms <= s.now_ms) as lapsed,
                       count(*) filter (where c.delay_until_ms is not null) as delayed
                  from ff_execution c
                 where c.queue_id = k.queue_id and c.due_at_ms < 253402300799999) n
         where k.lane_id = l.lane_id) d
  left join rate r on r.lane_id = l.lane_id;

comment on view ff_v_lane_stats is
$$Executions per lane: ready, running, delayed, the age of the oldest, the rate of completion. One row per lane.
Fast: lane_id = .. reads that lane alone. Cost grows with ready, running and delayed executions, not with ended ones.$$;
comment on column ff_v_lane_stats.lane_id is 'The name of the lane.';
comment on column ff_v_lane_stats.state is 'active, paused, draining or disabled.';
comment on column ff_v_lane_stats.ready is 'How many executions wait for a worker, without those reserved by a grant.';
comment on column ff_v_lane_stats.oldest_ready_at is 'When the oldest of those was submitted.';
comment on column ff_v_lane_stats.oldest_ready_age is 'How long ago that was.';
comment on column ff_v_lane_stats.running is 'How many are held by a worker under a live lease.';
comment on column ff_v_lane_stats.lapsed is
    'How many have an expired lease; the next claims on the lane reclaim them.';
comment on column ff_v_lane_stats.delayed is 'How many wait for a time: a delay, or the backoff of a retry.';
comment on column ff_v_lane_stats.ended_per_minute is
    'How many ended in the last minute; if 10000 of all lanes ended in less time, the rate over that time.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
