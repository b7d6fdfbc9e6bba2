-- The uuid of an execution id {fp:N}:uuid. NULL if the form is right but N is not the uuid's partition: no such
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

-- A new uuid in v7 layout: time first, for index locality, then random bits; the last byte is the partition (random if
-- none is given), so that the id alone determines the partition. All ids are generated here. Plain SQL, so that it is
-- inlined.
create or replace function ff__mint_id(p_now_ms bigint, p_partition int default null) returns uuid
language sql volatile
as $$
    select (lpad(to_hex(p_now_ms & 281474976710655), 12, '0') || '-7'
            || case when p_partition is null then substr(gen_random_uuid()::text, 16)
                    else substr(gen_random_uuid()::text, 16, 19) || lpad(to_hex(p_partition), 2, '0') end)::uuid
$$;

-- The id number p_n (from 0, below 16384) of a batch: ids of a batch share the time and the random bits of p_seed, an
-- id generated for the batch, and sort by p_n. Costs a tenth of an id with random bits of its own.
create or replace function ff__batch_id(p_seed text, p_n int, p_partition int) returns uuid
language sql immutable parallel safe
as $$
    select (left(p_seed, 15) || lpad(to_hex(p_n >> 2), 3, '0') || '-' || to_hex(8 + (p_n & 3)) || substr(p_seed, 21, 14)
            || lpad(to_hex(p_partition), 2, '0'))::uuid
$$;

-- The partition of an id: its last byte.
create or replace function ff__partition(p_id uuid) returns smallint
language sql immutable parallel safe
as $$ select get_byte(uuid_send(p_id), 15)::smallint $$;

-- The external form of an execution id: {fp:N}:uuid. The casts keep it immutable, which inlining requires; PostgreSQL
-- parses an SQL function that is not inlined at each call.
create or replace function ff__wire_id(p_partition smallint, p_execution_id uuid) returns text
language sql immutable parallel safe
as $$ select '{fp:' || p_partition::text || '}:' || p_execution_id::text $$;

-- The key of a slot: the uuid of an execution id or, since the execution need not exist, a hash of an id that no
-- execution can have. Errors: invalid_input (NULL), invalid_execution_id.
create or replace function ff__slot_key(p_execution_id text) returns uuid
language plpgsql stable
as $$
begin
    return coalesce(ff__execution_uuid(p_execution_id),
                    left(encode(sha256(convert_to(p_execution_id, 'UTF8')), 'hex'), 32)::uuid);
end
$$;
