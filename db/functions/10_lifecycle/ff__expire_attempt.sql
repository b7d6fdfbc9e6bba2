-- The attempt's time is over: a failure of class timeout; without a retry left the execution ends expired.
-- Returns as ff__fail.
create or replace function ff__expire_attempt(e ff_exec) returns jsonb
language plpgsql volatile
as $$
begin
    return ff__fail(e, 'expire', 'attempt_timeout', 'timeout', 'attempt_timeout', 'attempt_timeout', 'expired');
end
$$;
