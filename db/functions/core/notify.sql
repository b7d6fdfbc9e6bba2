-- Notifies the channel of an event family; always true, so that it can be used in a condition. PostgreSQL folds
-- duplicates within a transaction.
create or replace function ff__notify_family(p_family text) returns boolean
language plpgsql volatile
as $$
begin
    if (select s.value from ff_setting s where s.name = 'notify') = 'on' then
        perform pg_notify('ff_event_' || p_family, '');
    end if;
    return true;
end
$$;

-- Notifies channel ff_lane after an execution became ready on a lane, if a claim that found no work set wake_armed:
-- resets the flag, so that there is at most one notification per idle period. Never waits: if the lane row is locked,
-- another transaction is setting or resetting the flag.
create or replace function ff__notify_lane(p_lane_id text) returns void
language plpgsql volatile
as $$
begin
    if (select l.wake_armed from ff_lane_registry l where l.lane_id = p_lane_id) then
        update ff_lane_registry l set wake_armed = false
         where l.lane_id = (select x.lane_id from ff_lane_registry x
                             where x.lane_id = p_lane_id and x.wake_armed for update skip locked);
        if found and (select s.value from ff_setting s where s.name = 'notify') = 'on' then
            perform pg_notify('ff_lane', p_lane_id);
        end if;
    end if;
end
$$;

-- Notifies the watchers of a stream.
create or replace function ff__notify_stream(p_execution_id uuid, p_attempt_index int) returns void
language plpgsql volatile
as $$
begin
    if (select s.value from ff_setting s where s.name = 'notify') = 'on' then
        perform pg_notify(ff__stream_channel(p_execution_id, p_attempt_index), '');
    end if;
end
$$;

-- The notification channel of a watched stream.
create or replace function ff__stream_channel(p_execution_id uuid, p_attempt_index int) returns text
language sql immutable parallel safe
as $$ select 'ff_stream_' || p_execution_id::text || '_' || p_attempt_index::text $$;
