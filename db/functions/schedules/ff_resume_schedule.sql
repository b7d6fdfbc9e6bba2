-- Locks: the schedule. Repeating a call changes nothing.
create or replace function ff_resume_schedule(p_schedule_id text, out outcome text, out next_fire_at_ms bigint)
language plpgsql volatile security definer
as $$
declare
    s ff_schedule := ff__lock_schedule(p_schedule_id);
begin
    outcome := 'already_satisfied';
    next_fire_at_ms := s.next_fire_at_ms;
    if s.paused_at_ms is not null then
        outcome := 'resumed';
        next_fire_at_ms := ff__next_fire_time(s, case when s.cron is not null then ff__parse_cron(s.cron) end,
                                              greatest(ff__now_ms(), s.last_fire_at_ms), 1);
        update ff_schedule x
           set paused_at_ms = null, paused_reason = null,
               next_fire_at_ms = ff_resume_schedule.next_fire_at_ms, due_at_ms = ff_resume_schedule.next_fire_at_ms,
               error_count = 0, last_error = null, last_error_at_ms = null
         where x.schedule_id = p_schedule_id;
    end if;
end
$$;

comment on function ff_resume_schedule(text) is
$$Resumes a paused schedule with its next tick. Ticks during the pause are dropped, regardless of its catch-up policy.
next_fire_at_ms is null if it has ended meanwhile.

Outcomes: outcome = resumed | already_satisfied
Nullable: next_fire_at_ms
Errors: invalid_input, invalid_schedule, schedule_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
