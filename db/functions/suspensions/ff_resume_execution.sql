-- Locks: the execution. A repetition is rejected: execution_not_suspended, with the current state.
create or replace function ff_resume_execution(
    p_execution_id text,
    p_trigger text default 'operator',
    p_resume_delay_ms bigint default 0,
    out outcome text,
    out public_state text,
    out delay_until_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    e ff_exec;
begin
    if p_trigger is null or p_trigger not in ('operator', 'policy') then
        perform ff__invalid('p_trigger', 'must be operator or policy');
    elsif p_resume_delay_ms is null or p_resume_delay_ms not between 0 and 604800000 then
        perform ff__invalid('p_resume_delay_ms', 'must be between 0 and 604800000',
                            jsonb_build_object('value', p_resume_delay_ms));
    end if;
    e := ff__lock_execution(p_execution_id);
    if e.lifecycle_phase <> 'suspended' then
        perform ff__raise('execution_not_suspended', format('execution %s is %s', p_execution_id, e.public_state),
                          jsonb_build_object('execution_id', p_execution_id, 'public_state', e.public_state));
    end if;
    public_state := ff__resume(e, ff__open_suspension(e), p_trigger, p_resume_delay_ms, 'operator_resume',
                               session_user);
    e := ff__emit(e, 'operator', 'resumed', p_trigger,
                  jsonb_build_object('resumed_by', session_user, 'delay_ms', p_resume_delay_ms));
    outcome := 'resumed';
    delay_until_ms := e.now_ms + nullif(p_resume_delay_ms, 0);
end
$$;

comment on function ff_resume_execution(text, text, bigint) is
$$Resumes a suspended execution on behalf of an operator or a policy, regardless of its condition; immediately or after
p_resume_delay_ms. All waitpoints of the suspension are closed: later signals are rejected.

Outcomes: outcome = resumed
Nullable: delay_until_ms
Errors: invalid_input, invalid_execution_id, execution_not_found, execution_not_suspended, corrupt_state$$;
-- grant: ff_operator, ff_admin
