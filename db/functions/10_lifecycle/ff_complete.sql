-- Locks: the execution. Replay with the same handle: the recorded outcome, nothing written.
create or replace function ff_complete(
    p_handle text,
    p_result bytea default null,
    p_result_encoding text default null,
    out outcome text,
    out public_state text,
    out terminal_at_ms bigint,
    out replayed boolean
)
language plpgsql volatile security definer
set search_path from current
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    v record;
begin
    v := ff__complete(ff__decode_handle(p_handle), p_result, p_result_encoding);
    outcome := 'completed';
    public_state := 'completed';
    terminal_at_ms := v.terminal_at_ms;
    replayed := v.replayed;
end
$$;

comment on function ff_complete(text, bytea, text) is
$$Ends an execution with success and stores its result on the attempt that produced it. Only the holder of the live lease
may; the same call again answers as the first did, with replayed = true.

Outcomes: outcome = completed
Errors: invalid_input, invalid_handle, invalid_execution_id, execution_not_found, execution_not_active, stale_lease, lease_revoked, lease_expired$$;
