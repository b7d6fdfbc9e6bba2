-- A claim found nothing: passes on ends of flow members that nobody has passed on yet, if there are any. True: look
-- again. Never waits. One index probe when there is nothing to do.
create or replace function ff__unblock() returns boolean
language plpgsql volatile
as $$
declare
    v_now bigint := ff_now_ms(); -- a volatile call would keep the probe out of the index
begin
    if not exists (select from ff_flow_dispatch q where q.next_dispatch_at_ms <= v_now) then
        return false;
    end if;
    perform ff_dispatch_completions(50);
    return true;
end
$$;
