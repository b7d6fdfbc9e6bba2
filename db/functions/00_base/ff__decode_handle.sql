-- The fence inside a handle. Errors: invalid_input (NULL), invalid_handle.
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
