-- Locks: the schedule, then as ff_create_execution. Replay: by idempotency key.
create or replace function ff_fire_schedule(
    p_schedule_id text, p_idempotency_key text default null, out outcome text, out execution_id text
)
language plpgsql volatile security definer
as $$
declare
    s ff_schedule := ff__lock_schedule(p_schedule_id);
begin
    select case x.outcome when 'created' then 'fired' else x.outcome end, x.execution_id into outcome, execution_id
      from ff__fire(s, ff__now_ms(), null, p_idempotency_key) x;
end
$$;

comment on function ff_fire_schedule(text, text) is
$$Creates an execution of a schedule now, in addition to its ticks, even if it is paused or ended; its ticks do not
change. p_idempotency_key: as in ff_create_execution; duplicate returns the existing execution.

Outcomes: outcome = fired | duplicate
Errors: invalid_input, payload_too_large, schedule_not_found, invalid_lane_id, invalid_policy, invalid_capabilities
Errors: invalid_tag_key, quota_policy_not_found, budget_not_found, idempotency_conflict, lane_not_accepting$$;
-- grant: ff_operator, ff_admin
