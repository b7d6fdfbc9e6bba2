-- Applies a patch to the summary document of a stream, under the stream's lock. Returns the new version.
-- Errors: summary_too_large.
create or replace function ff__apply_patch(e ff_exec, p_patch jsonb, p_ts_ms bigint) returns int
language plpgsql volatile
as $$
declare
    c_max int := 1048576;
    v_document jsonb;
    v_text text;
    v_version int;
begin
    select s.document into v_document from ff_stream_summary s
     where s.execution_id = e.execution_id and s.attempt_index = e.current_attempt_index;
    v_document := ff__merge_patch(v_document, p_patch);
    v_text := v_document::text;
    if strpos(v_text, '__ff_null__') > 0 then
        v_text := ff__null_values(v_text);
        v_document := v_text::jsonb;
    end if;
    if octet_length(v_text) > c_max then
        perform ff__raise('summary_too_large',
                          format('the summary would have %s bytes, %s are allowed', octet_length(v_text), c_max),
                          jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                             'size', octet_length(v_text), 'limit', c_max));
    end if;
    insert into ff_stream_summary as s (
        execution_id, attempt_index, document, version, patch_kind, first_applied_ms, last_updated_ms)
    values (e.execution_id, e.current_attempt_index, v_document, 1, 'json_merge_patch', p_ts_ms, p_ts_ms)
    on conflict (execution_id, attempt_index) do update
        set document = excluded.document, version = s.version + 1, last_updated_ms = excluded.last_updated_ms
    returning s.version into v_version;
    return v_version;
end
$$;
