-- The fence inside a handle; a row of NULLs for anything that ff__encode_handle did not make. Checks before it casts. The
-- execution is NULL when the partition is not that of its uuid: no such execution can exist.
create or replace function ff__parse_handle(p_handle text) returns ff_fence
language plpgsql stable
as $$
declare
    v_part text[] := string_to_array(p_handle, '.');
begin
    -- What is left without the digits is the skeleton: with the places fixed by LIKE, the uuids are well formed.
    if p_handle like 'ff1.________-____-____-____-____________.________-____-____-____-____________.________-____-____-____-____________.%'
       and translate(p_handle, '0123456789abcdef', '') = '.----.----.----...'
       and substr(p_handle, 116) !~ E'[^0-9.]|(^|\\.)(0[0-9]|\\.|$)'
       and length(v_part[5]) <= 3 and length(v_part[6]) <= 10 and length(v_part[7]) <= 19
       and v_part[5]::int <= 255 and v_part[6]::bigint <= 2147483647
       and (length(v_part[7]) < 19 or v_part[7] collate "C" <= '9223372036854775807')
    then
        return (case when ff__partition(v_part[2]::uuid) = v_part[5]::int then v_part[2]::uuid end,
                '{fp:' || v_part[5] || '}:' || v_part[2],
                v_part[6]::int, v_part[3]::uuid, v_part[7]::bigint, v_part[4]::uuid)::ff_fence;
    end if;
    return null;
end
$$;
