-- The queue of a lane for work of a namespace with these requirements; created if missing. Rows are never updated, so a
-- call waits for a concurrent creation only once in the life of a queue.
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
        exit when v_id is not null;
        insert into ff_queue (lane_id, namespace, limited, caps_key, required_capabilities)
        values (p_lane_id, p_namespace, p_limited, p_caps_key, p_required_capabilities)
        on conflict do nothing;
    end loop;
    return v_id;
end
$$;

-- The position of an execution in its queue: higher priority first, then first come, first served (turn).
create or replace function ff__rank(p_priority int, p_turn bigint) returns bigint
language sql immutable parallel safe
as $$
    select ((9000 - p_priority)::bigint << 49) + p_turn
$$;

-- The ready_in value for work that does not go to the end of its queue: a side queue (the negative number), so that the
-- queue itself only grows at its end, in the order of turns; ff__move_start relies on it. Limited work has a single
-- queue.
create or replace function ff__ready_queue(p_queue_id int, p_limited boolean) returns int
language sql immutable parallel safe
as $$
    select case when p_limited then p_queue_id else -p_queue_id end
$$;

-- Moves locked executions to another queue of their lane after they came under a limit, or under none any more (limited
-- was set). Executions that were ready stay ready.
create or replace function ff__change_queue(p_ids uuid[]) returns void
language plpgsql volatile
as $$
begin
    update ff_execution c
       set queue_id = q.queue_id,
           ready_in = case when c.ready_in is not null then ff__ready_queue(q.queue_id, c.limited) end
      from (select x.execution_id,
                   ff__queue(y.lane_id, y.namespace, x.limited, y.caps_key, y.required_capabilities) as queue_id
              from ff_execution x join ff_queue y on y.queue_id = x.queue_id
             where x.execution_id = any (p_ids) and x.limited <> y.limited) q
     where c.execution_id = q.execution_id;
end
$$;

-- The state at another place with the same attempt_state, so that the next claim does the same.
create or replace function ff__state_at_place(p_state ff_state, p_place text) returns ff_state
language plpgsql stable
as $$
begin
    return (select t.state from ff_state_word t
             where t.place = p_place
               and t.attempt_state = (select f.attempt_state from ff_state_word f where f.state = p_state));
end
$$;
