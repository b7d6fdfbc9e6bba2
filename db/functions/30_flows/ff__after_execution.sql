-- A place in a list that is ordered by execution: the id of the last one read. Errors: invalid_cursor.
create or replace function ff__after_execution(p_after text) returns uuid
language plpgsql stable
as $$
begin
    if p_after is null then
        return null;
    elsif p_after !~ E'^\\{fp:[0-9]{1,3}\\}:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$' then
        perform ff__raise('invalid_cursor', 'p_after is not an execution id',
                          jsonb_build_object('cursor', left(p_after, 64)));
    end if;
    return right(p_after, 36)::uuid;
end
$$;
