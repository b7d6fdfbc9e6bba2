-- The merge patch inside a payload. PostgreSQL 15 has no other way to ask whether a text is json than to try: this is the
-- one place that catches an exception, and only summaries come here. Errors: invalid_patch (DETAIL.reason).
create or replace function ff__parse_patch(p_payload bytea, p_wire_id text) returns jsonb
language plpgsql stable
as $$
declare
    v_patch jsonb;
    v_reason text;
begin
    begin
        v_patch := convert_from(p_payload, 'UTF8')::jsonb;
    exception
        when program_limit_exceeded then v_reason := 'depth';
        when data_exception then v_reason := 'not_json';
    end;
    if v_reason is null and jsonb_typeof(v_patch) <> 'object' then
        v_reason := 'not_an_object';
    elsif v_reason is null
          and jsonb_path_exists(v_patch, 'strict $.**{16} ? (@.type() == "object" || @.type() == "array")') then
        v_reason := 'depth';
    elsif v_reason is null and strpos(ff__null_values(v_patch::text), '__ff_null__') > 0 then
        -- In a key, or inside a longer string: it would stay in the document.
        v_reason := 'reserved_word';
    end if;
    if v_reason is not null then
        perform ff__raise('invalid_patch', format('the payload is not a merge patch: %s', v_reason),
                          jsonb_build_object('execution_id', p_wire_id, 'reason', v_reason));
    end if;
    return v_patch;
end
$$;
