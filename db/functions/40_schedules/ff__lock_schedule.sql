-- Locks a schedule (waits for it). Errors: invalid_input, schedule_not_found.
create or replace function ff__lock_schedule(p_schedule_id text) returns ff_schedule
language plpgsql volatile
as $$
declare
    s ff_schedule;
begin
    perform ff__check_schedule_id(p_schedule_id);
    select x.* into s from ff_schedule x where x.schedule_id = p_schedule_id for update;
    if not found then
        perform ff__raise('schedule_not_found', format('there is no schedule %s', p_schedule_id),
                          jsonb_build_object('schedule_id', p_schedule_id));
    end if;
    return s;
end
$$;
