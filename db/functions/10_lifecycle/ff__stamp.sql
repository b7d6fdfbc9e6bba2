-- Opens an operation on an execution row that has just been locked: its time and its place in the event order.
-- From here on last_mutation_at_ms IS the operation's clock (read once, after the lock) and last_event_ord the ord of
-- every event it emits: never before this transaction, never before an earlier event of the same execution.
create or replace function ff__stamp(e ff_exec_core) returns ff_exec_core
language plpgsql volatile
as $$
begin
    e.last_mutation_at_ms := ff_now_ms();
    e.last_event_ord := greatest(pg_current_xact_id()::text::bigint, e.last_event_ord);
    return e;
end
$$;
