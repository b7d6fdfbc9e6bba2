-- Why a lease is over: the timer that bounds it.
create or replace function ff__lapse_reason(e ff_exec) returns text
language plpgsql immutable
as $$
begin
    return case when e.deadline_at_ms <= e.now_ms then 'execution_deadline'
                when e.attempt_timeout_at_ms <= e.now_ms then 'attempt_timeout'
                else 'ttl' end;
end
$$;
