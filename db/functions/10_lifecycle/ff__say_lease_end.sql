-- Says the end of a lease on its own, where the operation has no other event.
create or replace function ff__say_lease_end(e ff_exec) returns ff_exec
language plpgsql volatile
as $$
declare
    v_type text := e.lease_end;
begin
    if v_type is null then
        return e;
    end if;
    e.lease_end := null;
    return ff__emit(e, 'lease', v_type, e.lease_end_reason);
end
$$;
