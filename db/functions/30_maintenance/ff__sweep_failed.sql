-- Records a row that a step could not process and backs it off: one second the first time, twice as long each time after,
-- ten minutes at most. Does nothing while another transaction writes the error rows of the step.
create or replace function ff__sweep_failed(p_name text, p_row_key text, p_sqlstate text, p_message text) returns void
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
begin
    if ff__sweep_guard(p_name) then
        insert into ff_reconciler_error as x (name, row_key, attempts, last_error, next_retry_at_ms, failing_since_ms)
        values (p_name, p_row_key, 1, left(p_sqlstate || ': ' || p_message, 1000), v_now + 1000, v_now)
        on conflict (name, row_key) do update set
            attempts = x.attempts + 1, last_error = excluded.last_error,
            next_retry_at_ms = v_now + least(600000, 1000 * 2 ^ least(x.attempts, 20))::bigint;
    end if;
end
$$;
