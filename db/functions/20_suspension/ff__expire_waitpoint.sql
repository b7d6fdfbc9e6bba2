-- Ends a pending waitpoint whose time is over, of a locked execution; whether it was so.
create or replace function ff__expire_waitpoint(e ff_exec, p_waitpoint_id uuid) returns boolean
language plpgsql volatile
as $$
begin
    if not exists (select from ff_waitpoint w
                    where w.waitpoint_id = p_waitpoint_id and w.execution_id = e.execution_id
                      and w.state = 'pending' and w.expires_at_ms <= e.now_ms) then
        return false;
    end if;
    perform ff__end_pending(e, p_waitpoint_id, 'expired', 'never_committed');
    return true;
end
$$;
