-- The queue of a lane for work of a namespace with these requirements; makes it if there is none. Rows are never changed, so
-- that a concurrent creation is waited for once in the life of a queue.
create or replace function ff__queue(
    p_lane_id text, p_namespace text, p_limited boolean, p_caps_key text, p_required_capabilities text[]
) returns int
language plpgsql volatile
as $$
declare
    v_id int;
begin
    loop
        v_id := (select q.queue_id from ff_queue q
                  where q.lane_id = p_lane_id and q.limited = p_limited and q.namespace = p_namespace
                    and q.caps_key = p_caps_key);
        if v_id is not null then
            return v_id;
        end if;
        insert into ff_queue (lane_id, namespace, limited, caps_key, required_capabilities)
        values (p_lane_id, p_namespace, p_limited, p_caps_key, p_required_capabilities)
        on conflict do nothing;
    end loop;
end
$$;

-- The place of an execution among those of its queue: higher priority first, then first come, first served (turn).
create or replace function ff__rank(p_priority int, p_turn bigint) returns bigint
language sql immutable parallel safe
as $$
    select ((9000 - p_priority)::bigint << 49) + p_turn
$$;

-- Whether a claim may take an execution as it stands: it is in a queue, or time has made it claimable. The one place that
-- says so. A lease that was renewed since its check was due has not ended.
create or replace function ff__claimable(c ff_execution, p_now_ms bigint) returns boolean
language sql immutable parallel safe
as $$
    select (c).ready_in is not null
        or (c).due_at_ms <= p_now_ms and ((c).state <> 'leased' or (c).lease_expires_at_ms <= p_now_ms)
$$;
