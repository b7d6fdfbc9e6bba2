-- Whether this transaction may write the row of a step and its error rows: one at a time does, the others do not wait.
-- Without it two sweeps that fail on the same row would wait for each other's upsert.
create or replace function ff__sweep_guard(p_name text) returns boolean
language plpgsql volatile
as $$
begin
    return pg_try_advisory_xact_lock(hashtextextended('ff_reconciler_error ' || current_schema() || ' ' || p_name, 0));
end
$$;
