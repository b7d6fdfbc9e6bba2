-- Whether a flow was cancelled together with its members: they may finish what they do, not wait for anything new.
create or replace function ff__flow_cancelled(p_flow_id uuid) returns boolean
language plpgsql volatile
as $$
begin
    return exists (select from ff_flow_core f
                    where f.flow_id = p_flow_id and f.public_flow_state = 'cancelled' and not f.claimable);
end
$$;
