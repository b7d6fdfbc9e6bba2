-- The ends of a flow's members that were put off and are due again, at most p_limit. No end is put off for more than a
-- minute: one that lies further ahead was put off before the clock stepped back, and is due too.
create or replace function ff__put_off_ends(p_flow_id uuid, p_now bigint, p_limit int) returns bigint[]
language sql stable
as $$
    select array(
        (select q.event_id from ff_flow_dispatch q
          where q.flow_id = p_flow_id and q.counted and q.next_dispatch_at_ms <= p_now
          order by q.next_dispatch_at_ms limit p_limit)
        union all
        (select q.event_id from ff_flow_dispatch q
          where q.flow_id = p_flow_id and q.counted and q.next_dispatch_at_ms > p_now + 60000
          order by q.next_dispatch_at_ms limit p_limit)
        limit p_limit)
$$;
