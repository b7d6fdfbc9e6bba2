-- Locks: the schedule. Repeating a call changes nothing.
create or replace function ff_pause_schedule(
    p_schedule_id text, p_reason text default null, out outcome text, out paused_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    s ff_schedule;
begin
    if p_reason is not null then
        perform ff__check_text('p_reason', p_reason, 0, 4096);
    end if;
    s := ff__lock_schedule(p_schedule_id);
    outcome := 'already_satisfied';
    paused_at_ms := s.paused_at_ms;
    if paused_at_ms is null then
        outcome := 'paused';
        paused_at_ms := ff__now_ms();
        update ff_schedule x
           set paused_at_ms = ff_pause_schedule.paused_at_ms, paused_reason = p_reason, due_at_ms = null
         where x.schedule_id = p_schedule_id;
    end if;
end
$$;

comment on function ff_pause_schedule(text, text) is
$$Stops a schedule until ff_resume_schedule. Executions that it has created continue.

Outcomes: outcome = paused | already_satisfied
Errors: invalid_input, schedule_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
