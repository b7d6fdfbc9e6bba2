-- Locks: the execution. Repeatable.
create or replace function ff_expire_suspension(p_execution_id text, out outcome text, out public_state text)
language plpgsql volatile security definer
as $$
declare
    e ff_exec := ff__open(ff__execution_uuid(p_execution_id));
    s ff_suspension;
begin
    if e.execution_id is null then
        outcome := 'not_found';
        return;
    end if;
    outcome := 'not_suspended';
    if e.lifecycle_phase = 'suspended' then
        s := ff__open_suspension(e);
        outcome := case when s.timeout_at_ms <= e.now_ms then ff__expire_suspension(e, s) else 'not_due' end;
    end if;
    select c.public_state into ff_expire_suspension.public_state
      from ff_exec_core c where c.execution_id = e.execution_id;
end
$$;

comment on function ff_expire_suspension(text) is
$$Applies the timeout of a suspension if it has passed: the execution fails, is cancelled, expires, resumes with a
timeout signal, or is escalated to an operator, depending on the timeout behavior of the suspension.

Outcomes: outcome = failed | cancelled | expired | auto_resumed | escalated | not_due | not_suspended | not_found
Nullable: public_state
Errors: invalid_input, invalid_execution_id, corrupt_state$$;
-- grant: ff_operator, ff_admin
