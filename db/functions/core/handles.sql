-- Parses the fence in a handle. Errors: invalid_input (NULL), invalid_handle.
create or replace function ff__decode_handle(p_handle text) returns ff_fence
language plpgsql stable
as $$
declare
    v_fence ff_fence := ff__parse_handle(p_handle);
begin
    if v_fence.lease_id is null then
        if p_handle is null then
            perform ff__invalid('p_handle', 'must not be null');
        end if;
        perform ff__raise('invalid_handle', 'not a handle of this engine');
    end if;
    return v_fence;
end
$$;

-- The handle of a lease: ff1.execution.lease.attempt.partition.attempt_index.lease_epoch. The uuids come first, at
-- fixed positions, so that decoding needs no search. ff__decode_handle is its inverse. STABLE because concat_ws is: an
-- SQL function declared less volatile than its body is not inlined.
create or replace function ff__encode_handle(
    p_partition smallint,
    p_execution_id uuid,
    p_attempt_index int,
    p_lease_id uuid,
    p_lease_epoch bigint,
    p_attempt_id uuid
) returns text
language sql stable parallel safe
as $$
    select concat_ws('.', 'ff1', p_execution_id, p_lease_id, p_attempt_id, p_partition, p_attempt_index, p_lease_epoch)
$$;

-- Parses the fence in a handle; all NULL for text that ff__encode_handle did not produce: the result must encode to the
-- same text. The execution is NULL if the partition does not match its uuid: no such execution can exist.
create or replace function ff__parse_handle(p_handle text) returns ff_fence
language plpgsql stable
as $$
declare
    v_part text[] := string_to_array(p_handle, '.');
    v_partition smallint;
    f ff_fence;
begin
    v_partition := v_part[5]::smallint;
    f := (v_part[2]::uuid, null, v_part[6]::int, v_part[3]::uuid, v_part[7]::bigint, v_part[4]::uuid)::ff_fence;
    if (ff__encode_handle(v_partition, f.execution_id, f.attempt_index, f.lease_id, f.lease_epoch, f.attempt_id)
        = p_handle and v_partition between 0 and 255 and f.attempt_index >= 0 and f.lease_epoch >= 0) is not true
    then
        return null;
    end if;
    f.wire_id := ff__wire_id(v_partition, f.execution_id);
    if ff__partition(f.execution_id) <> v_partition then
        f.execution_id := null;
    end if;
    return f;
exception when data_exception then
    return null;
end
$$;

-- The execution named by a handle; NULL if the text does not have the form of a handle. Does not validate the handle:
-- ff__fence_holds does. Raises an error for non-hexadecimal characters. Plain SQL, so that it is inlined.
create or replace function ff__handle_id(p_handle text) returns uuid
language sql immutable parallel safe
as $$
    select case when p_handle like 'ff1.________-____-____-____-____________.________-____-____-____-____________.'
                                   '________-____-____-____-____________.%.%.%'
                then substr(p_handle, 5, 36)::uuid end
$$;

-- ff__handle_id for each handle; NULL where it raises an error.
create or replace function ff__handle_ids(p_handles text[]) returns uuid[]
language plpgsql stable
as $$
begin
    return array(select ff__handle_id(h.handle) from unnest(p_handles) with ordinality h(handle, n) order by h.n);
exception when data_exception then
    return array(select (ff__parse_handle(h.handle)).execution_id
                   from unnest(p_handles) with ordinality h(handle, n) order by h.n);
end
$$;
