-- ff__open_flow without waiting: false if the flow is busy or gone.
create or replace function ff__try_flow(p_flow_id uuid) returns boolean
language plpgsql volatile
as $$
begin
    perform from ff_flow_core f where f.flow_id = p_flow_id for update skip locked;
    if not found then
        return false;
    end if;
    perform set_config('ff.flow', p_flow_id::text, true);
    return true;
end
$$;
