-- The key of a slot: the uuid of an execution id, or, since the execution need not exist, a hash of one that no
-- execution can have. Errors: invalid_input (NULL), invalid_execution_id.
create or replace function ff__key_uuid(p_execution_id text) returns uuid
language plpgsql stable
as $$
begin
    return coalesce(ff__execution_uuid(p_execution_id),
                    left(encode(sha256(convert_to(p_execution_id, 'UTF8')), 'hex'), 32)::uuid);
end
$$;
