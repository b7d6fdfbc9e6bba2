-- Whether members of a flow may be claimed: it is not being built, and not cancelled together with its members.
create or replace function ff__flow_claimable(p_flow_id uuid) returns boolean
language plpgsql stable
as $$
begin
    return coalesce((select f.claimable from ff_flow_core f where f.flow_id = p_flow_id), true);
end
$$;
