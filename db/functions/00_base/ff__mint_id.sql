-- A fresh uuid in v7 layout: time first, for index locality; random for the rest; the last byte is the partition
-- (random when none is given), so that any id places its call. The only place where ids are made. Plain SQL, so that it
-- is inlined.
create or replace function ff__mint_id(p_now_ms bigint, p_partition int default null) returns uuid
language sql volatile
as $$
    select (lpad(to_hex(p_now_ms & 281474976710655), 12, '0') || '-7'
            || case when p_partition is null then substr(gen_random_uuid()::text, 16)
                    else substr(gen_random_uuid()::text, 16, 19) || lpad(to_hex(p_partition), 2, '0') end)::uuid
$$;
