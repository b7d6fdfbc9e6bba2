-- Locks: the execution. Repeatable.
create or replace function ff_promote_delayed(p_execution_id text, out outcome text, out public_state text)
language plpgsql volatile security definer
as $$
declare
    e ff_exec := ff__open(ff__execution_uuid(p_execution_id));
begin
    public_state := e.public_state;
    outcome := case
        when e.execution_id is null then 'not_found'
        when e.eligibility_state <> 'not_eligible_until_time' then 'not_delayed'
        when e.delay_until_ms > e.now_ms then 'not_due'
        else 'promoted' end;
    if outcome = 'promoted' then
        public_state := ff__settle(e);
    end if;
end
$$;

comment on function ff_promote_delayed(text) is
$$Makes an execution whose delay has ended claimable. The next claim does the same.

Outcomes: outcome = promoted | not_due | not_delayed | not_found
Nullable: public_state
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_operator, ff_admin
