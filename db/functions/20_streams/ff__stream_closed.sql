-- Refuses to write into a stream that is over.
create or replace function ff__stream_closed(e ff_exec, p_attempt_index int) returns void
language plpgsql stable
as $$
declare
    v_id text := ff__wire_id(e.partition_key, e.execution_id);
begin
    perform ff__raise('stream_closed', format('the stream of attempt %s of execution %s is closed', p_attempt_index, v_id),
                      jsonb_build_object('execution_id', v_id, 'attempt_index', p_attempt_index,
                                         'public_state', e.public_state,
                                         'closed_reason', (select coalesce(m.closed_reason, ff__close_reason(a.outcome))
                                                             from ff_attempt a
                                                             left join ff_stream_meta m
                                                               on m.execution_id = a.execution_id
                                                              and m.attempt_index = a.attempt_index
                                                            where a.execution_id = e.execution_id
                                                              and a.attempt_index = p_attempt_index)));
end
$$;
