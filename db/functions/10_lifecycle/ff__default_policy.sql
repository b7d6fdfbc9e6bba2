-- The policy of an execution that was given none, as it is stored.
create or replace function ff__default_policy() returns jsonb
language sql immutable parallel safe
as $$
    select jsonb '{"max_reclaim_count": 100, "max_replay_count": 10, "dedup_window_ms": 604800000,
                   "max_signals_per_execution": 10000}'
$$;
