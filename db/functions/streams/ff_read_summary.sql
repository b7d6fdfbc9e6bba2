create or replace function ff_read_summary(p_execution_id text, p_attempt_index int)
returns table (document jsonb, version int, patch_kind text, first_applied_ms bigint, last_updated_ms bigint)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__stream_of(p_execution_id, p_attempt_index);
begin
    return query
        select s.document, s.version, s.patch_kind, s.first_applied_ms, s.last_updated_ms from ff_stream_summary s
         where s.execution_id = v_id and s.attempt_index = p_attempt_index;
end
$$;

comment on function ff_read_summary(text, int) is
$$The document built by the durable_summary frames of one attempt; version counts them. No row before the first.

Rows: at most one
Outcomes: patch_kind = json_merge_patch
Errors: invalid_input, invalid_execution_id, execution_not_found, attempt_not_found$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
