-- Locks: the execution. Repeatable.
create or replace function ff_expire_execution(
    p_execution_id text, p_phase text, out outcome text, out public_state text
)
language plpgsql volatile security definer
as $$
declare
    v jsonb;
    e ff_exec;
begin
    if p_phase is null or p_phase not in ('attempt_timeout', 'execution_deadline') then
        perform ff__invalid('p_phase', 'must be attempt_timeout or execution_deadline');
    end if;
    e := ff__open(ff__execution_uuid(p_execution_id));
    public_state := e.public_state;
    if e.execution_id is null then
        outcome := 'not_found';
    elsif e.lifecycle_phase = 'terminal' then
        outcome := 'already_terminal';
    elsif p_phase = 'execution_deadline' and e.deadline_at_ms <= e.now_ms then
        perform ff__expire_deadline(e);
        outcome := 'expired';
        public_state := 'expired';
    elsif p_phase = 'attempt_timeout' and e.lifecycle_phase = 'active' and e.attempt_timeout_at_ms <= e.now_ms then
        v := ff__expire_attempt(e);
        outcome := case v ->> 'outcome' when 'retry_scheduled' then 'retry_scheduled' else 'expired' end;
        public_state := v ->> 'public_state';
    else
        outcome := 'not_due';
    end if;
end
$$;

comment on function ff_expire_execution(text, text) is
$$Applies a timer that is due. attempt_timeout: the running attempt fails with a timeout and is retried if its policy
allows another retry. execution_deadline: the execution ends expired, in any state. The next claim does the same.

Outcomes: outcome = expired | retry_scheduled | not_due | already_terminal | not_found
Nullable: public_state
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_operator, ff_admin
