-- The fence inside a handle. Accepts exactly what ff__encode_handle makes; checks before it casts.
-- execution_id is the wire text. Errors: invalid_input (NULL), invalid_handle.
create or replace function ff__decode_handle(p_handle text) returns ff_fence
language plpgsql stable
as $$
declare
    v_digits text := translate(substr(p_handle, 5, 110), '.-', '');
    v_tail text := substr(p_handle, 116);
    v_partition text := split_part(v_tail, '.', 1);
    v_index text := split_part(v_tail, '.', 2);
    v_epoch text := split_part(v_tail, '.', 3);
    v_fence ff_fence;
begin
    if p_handle is null then
        perform ff__invalid('p_handle', 'must not be null');
    end if;
    if p_handle like 'ff1.________-____-____-____-____________.________-____-____-____-____________.________-____-____-____-____________.%'
       and length(v_digits) = 96 and v_digits !~ '[^0-9a-f]'
       and v_tail !~ '[^0-9.]'
       and length(v_partition) between 1 and 3 and length(v_index) between 1 and 10 and length(v_epoch) between 1 and 19
       and (length(v_epoch) < 19 or v_epoch collate "C" <= '9223372036854775807')
       and v_partition::int <= 255 and v_index::bigint <= 2147483647
    then
        v_fence.execution_id := '{fp:' || v_partition || '}:' || substr(p_handle, 5, 36);
        v_fence.lease_id := substr(p_handle, 42, 36)::uuid;
        v_fence.attempt_id := substr(p_handle, 79, 36)::uuid;
        v_fence.attempt_index := v_index::int;
        v_fence.lease_epoch := v_epoch::bigint;
        -- Leading zeros, a fourth dot: whatever is left that encode would not have written.
        if v_tail = v_partition::int || '.' || v_fence.attempt_index || '.' || v_fence.lease_epoch then
            return v_fence;
        end if;
    end if;
    perform ff__raise('invalid_handle', 'not a handle of this engine');
    return null;
end
$$;
