-- Wakes those who watch a stream.
create or replace function ff__ring_stream(p_execution_id uuid, p_attempt_index int) returns void
language plpgsql volatile
as $$
begin
    if (select s.value from ff_setting s where s.name = 'notify') = 'on' then
        perform pg_notify(ff__stream_channel(p_execution_id, p_attempt_index), '');
    end if;
end
$$;
