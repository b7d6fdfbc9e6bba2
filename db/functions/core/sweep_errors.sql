-- Whether a row of a step has failed and is not yet due for a retry; without p_now_ms, whether it has failed at all.
create or replace function ff__is_backed_off(p_name text, p_row_key text, p_now_ms bigint default null) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from ff_reconciler_error x
                    where x.name = p_name and x.row_key = p_row_key
                      and (p_now_ms is null or x.next_retry_at_ms > p_now_ms));
end
$$;

-- Whether an error is not specific to the row, so that a sweep must not back the row off for it: the transaction cannot
-- continue (serialization, deadlock, read-only), a lock timeout, or the server is out of resources or shutting down. A
-- cancelled query (also by statement_timeout) is not seen here: OTHERS does not catch it.
create or replace function ff__stops_sweep(p_sqlstate text) returns boolean
language plpgsql immutable
as $$
begin
    return left(p_sqlstate, 2) in ('40', '25', '53', '57', '58') or p_sqlstate = '55P03';
end
$$;

-- Records a row that a step could not process and backs it off: one second at first, doubled each time, at most ten
-- minutes. No effect while another transaction writes the error rows of the step.
create or replace function ff__record_sweep_error(p_name text, p_row_key text, p_sqlstate text, p_message text)
returns void
language plpgsql volatile
as $$
declare
    v_now bigint := ff__now_ms();
begin
    if ff__try_lock_step(p_name) then
        insert into ff_reconciler_error as x (name, row_key, attempts, last_error, next_retry_at_ms, failing_since_ms)
        values (p_name, p_row_key, 1, left(p_sqlstate || ': ' || p_message, 1000), v_now + 1000, v_now)
        on conflict (name, row_key) do update set
            attempts = x.attempts + 1, last_error = excluded.last_error,
            next_retry_at_ms = v_now + least(600000, 1000 * 2 ^ least(x.attempts, 20))::bigint;
    end if;
end
$$;

-- Whether this transaction may write the row of a step and its error rows: only one at a time may, and others do not
-- wait. Otherwise two sweeps that fail on the same row would wait for each other's upsert.
create or replace function ff__try_lock_step(p_name text) returns boolean
language plpgsql volatile
as $$
begin
    return pg_try_advisory_xact_lock(hashtextextended('ff_reconciler_error ' || current_schema() || ' ' || p_name, 0));
end
$$;

-- Deletes the error rows of rows that need no retry: processed, by this or another transaction, or gone.
create or replace function ff__delete_sweep_errors(p_name text, p_row_keys text[]) returns void
language plpgsql volatile
as $$
begin
    if p_row_keys <> '{}' and ff__try_lock_step(p_name) then
        delete from ff_reconciler_error x where x.name = p_name and x.row_key = any (p_row_keys);
    end if;
end
$$;
