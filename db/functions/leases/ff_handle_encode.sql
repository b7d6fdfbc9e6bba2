create or replace function ff_handle_encode(
    p_execution_id text,
    p_attempt_index int,
    p_lease_id uuid,
    p_lease_epoch bigint,
    p_attempt_id uuid,
    out handle text
)
language plpgsql immutable security definer
as $$
begin
    perform ff__execution_uuid(p_execution_id);
    if p_attempt_index is null or p_attempt_index < 0 then
        perform ff__invalid('p_attempt_index', 'must be 0 or more');
    elsif p_lease_id is null then
        perform ff__invalid('p_lease_id', 'must not be null');
    elsif p_lease_epoch is null or p_lease_epoch < 0 then
        perform ff__invalid('p_lease_epoch', 'must be 0 or more');
    elsif p_attempt_id is null then
        perform ff__invalid('p_attempt_id', 'must not be null');
    end if;
    handle := ff__encode_handle(split_part(substr(p_execution_id, 5), '}', 1)::smallint,
                                right(p_execution_id, 36)::uuid, p_attempt_index, p_lease_id, p_lease_epoch,
                                p_attempt_id);
end
$$;

comment on function ff_handle_encode(text, int, uuid, bigint, uuid) is
$$Packs an execution id, an attempt index and a fence into a handle, the text argument of the short functions.
Reads no table and does not validate the fence: the fence check rejects an invented handle.

Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
