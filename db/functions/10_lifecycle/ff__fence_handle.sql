-- ff__fence for a handle. A handle that is the one of the row's live lease, letter by letter, holds it; only another is
-- taken apart, for the checks in their order. Errors: invalid_input (NULL), invalid_handle, then as ff__fence.
create or replace function ff__fence_handle(p_handle text, p_op text default null) returns ff_exec
language plpgsql volatile
as $$
declare
    e ff_exec;
begin
    -- What is left without the digits is the skeleton: the cast cannot fail.
    if p_handle like 'ff1.________-____-____-____-____________.________-____-____-____-____________.________-%'
       and translate(left(p_handle, 114), '0123456789abcdef', '') = '.----.----.----'
       and translate(substr(p_handle, 115), '0123456789', '') = '...'
    then
        e := ff__open(substr(p_handle, 5, 36)::uuid);
        if e.ownership_state = 'leased' and e.lease_expires_at_ms > e.now_ms
           and p_handle = ff__encode_handle(e.partition_key, e.execution_id, e.current_attempt_index, e.lease_id,
                                            e.lease_epoch, e.current_attempt_id)
        then
            return e;
        end if;
    end if;
    return ff__fence(ff__decode_handle(p_handle), p_op);
end
$$;
