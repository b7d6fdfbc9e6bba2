-- The uuid of an execution id {fp:N}:uuid. NULL when the form is right but N is not the uuid's partition: no such
-- execution can exist, and a lookup by NULL finds none. Checks before it casts; reads no row.
-- Errors: invalid_input (NULL), invalid_execution_id.
create or replace function ff__execution_uuid(p_execution_id text) returns uuid
language plpgsql stable
as $$
declare
    v_partition text := split_part(substr(p_execution_id, 5), '}', 1);
    v_digits text := replace(right(p_execution_id, 36), '-', '');
    v_uuid uuid;
begin
    if p_execution_id is null then
        perform ff__invalid('p_execution_id', 'must not be null');
    end if;
    if p_execution_id not like '{fp:_%}:________-____-____-____-____________'
       or length(v_digits) <> 32 or v_digits ~ '[^0-9a-fA-F]'
       or length(v_partition) not between 1 and 3 or length(p_execution_id) <> 42 + length(v_partition)
       or v_partition ~ '[^0-9]' or (length(v_partition) > 1 and v_partition like '0%')
       or v_partition::int > 255
    then
        perform ff__raise('invalid_execution_id', 'not an execution id',
                          jsonb_build_object('execution_id', left(p_execution_id, 64)));
    end if;
    v_uuid := right(p_execution_id, 36)::uuid;
    if v_partition::int <> ff__partition(v_uuid) then
        return null;
    end if;
    return v_uuid;
end
$$;
