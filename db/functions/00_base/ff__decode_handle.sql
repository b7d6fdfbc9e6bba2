-- The fence inside a handle. Accepts exactly what ff__encode_handle makes; checks before it casts. The execution is NULL
-- when the partition is not that of its uuid: no such execution can exist. Few expressions: it is on every hot path.
-- Errors: invalid_input (NULL), invalid_handle.
create or replace function ff__decode_handle(p_handle text) returns ff_fence
language plpgsql stable
as $$
declare
    v_part text[] := string_to_array(p_handle, '.');
begin
    if p_handle is null then
        perform ff__invalid('p_handle', 'must not be null');
    end if;
    if p_handle like 'ff1.________-____-____-____-____________.________-____-____-____-____________.________-____-____-____-____________.%'
       and translate(substr(p_handle, 5, 110), '.-', '') !~ '[^0-9a-f]'
       and length(translate(substr(p_handle, 5, 110), '.-', '')) = 96
       and cardinality(v_part) = 7
       and v_part[5] ~ '^(0|[1-9][0-9]?[0-9]?)$' and v_part[5]::int <= 255
       and v_part[6] ~ '^(0|[1-9][0-9]*)$' and length(v_part[6]) <= 10 and v_part[6]::bigint <= 2147483647
       and v_part[7] ~ '^(0|[1-9][0-9]*)$' and length(v_part[7]) <= 19
       and (length(v_part[7]) < 19 or v_part[7] collate "C" <= '9223372036854775807')
    then
        return (case when ff__partition(v_part[2]::uuid) = v_part[5]::int then v_part[2]::uuid end,
                '{fp:' || v_part[5] || '}:' || v_part[2],
                v_part[6]::int, v_part[3]::uuid, v_part[7]::bigint, v_part[4]::uuid)::ff_fence;
    end if;
    perform ff__raise('invalid_handle', 'not a handle of this engine');
    return null;
end
$$;
