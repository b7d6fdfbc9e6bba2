-- Held by the transaction of every single step. A killed run's last statement may still be at work on the
-- server although its other locks are gone: this waits for it.
do $pyff$
begin
    perform set_config('lock_timeout', '5min', true);
    perform pg_advisory_xact_lock(hashtext('pyff ' || current_setting('pyff.private_schema')), 2);
end
$pyff$;
