-- One item of ff_complete_many that its statement left over: judged as ff_complete would, with the kind of error instead
-- of the error. Its row, if there is one, is locked.
create or replace function ff__complete_one(
    p_handle text,
    p_result bytea,
    p_result_encoding text,
    out terminal_at_ms bigint,
    out replayed boolean,
    out error_kind text
)
language plpgsql volatile
as $$
declare
    v_fence ff_fence := ff__parse_handle(p_handle);
    e ff_exec;
begin
    replayed := false;
    if octet_length(p_result) > 1024 and octet_length(p_result) > ff__limit('max_execution_bytes') then
        error_kind := 'payload_too_large';
        return;
    elsif v_fence.lease_id is null then
        error_kind := case when p_handle is null then 'invalid_input' else 'invalid_handle' end;
        return;
    end if;
    e := ff__open(v_fence.execution_id);
    error_kind := ff__verdict(e, v_fence, 'complete');
    if error_kind is null then
        terminal_at_ms := e.now_ms;
        e := ff__complete(e, 'complete', p_result, p_result_encoding);
    elsif error_kind = 'replay' then
        error_kind := null;
        replayed := true;
        terminal_at_ms := (ff__recorded_release(v_fence, 'complete')).ended_at_ms;
    end if;
end
$$;
