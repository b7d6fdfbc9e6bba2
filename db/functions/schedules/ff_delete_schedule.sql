-- Locks: the schedule. Repeating a call changes nothing.
create or replace function ff_delete_schedule(p_schedule_id text, out outcome text)
language plpgsql volatile security definer
as $$
begin
    perform ff__check_schedule_id(p_schedule_id);
    delete from ff_schedule x where x.schedule_id = p_schedule_id;
    outcome := case when found then 'deleted' else 'already_satisfied' end;
end
$$;

comment on function ff_delete_schedule(text) is
$$Deletes a schedule. Executions that it has created stay; a tick that has an execution gets no second one, even if a
schedule with this id is created again.

Outcomes: outcome = deleted | already_satisfied
Errors: invalid_input$$;
-- grant: ff_producer, ff_operator, ff_admin
