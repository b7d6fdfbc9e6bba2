-- How often an execution may be reclaimed after a crash, by its stored policy.
create or replace function ff__max_reclaims(p_execution_id uuid) returns int
language sql stable
as $$
    select coalesce((select (i.policy -> 'max_reclaim_count')::int from ff_exec_input i
                      where i.execution_id = p_execution_id), 100)
$$;

-- How long an ended execution is kept: as in its policy (p_own_ms), otherwise by its final state. Written so that it is
-- inlined.
create or replace function ff__retention_ms(
    p_own_ms bigint, p_state ff_state, p_retention_ms bigint, p_retention_failed_ms bigint
) returns bigint
language sql immutable parallel safe
as $$
    select case when p_own_ms is not null then p_own_ms
                when p_state in ('completed', 'skipped') then p_retention_ms
                else p_retention_failed_ms end
$$;

-- A limit of the engine, from the settings. Callers cannot pass one.
create or replace function ff__engine_limit(p_name text) returns int
language plpgsql stable
as $$
begin
    return (select s.value::int from ff_setting s where s.name = p_name);
end
$$;

-- How many signals an execution may receive: its policy's max_signals_per_execution.
create or replace function ff__max_signals(p_execution_id uuid) returns int
language plpgsql stable
as $$
begin
    return coalesce((select (c.policy -> 'max_signals_per_execution')::int from ff_execution c
                      where c.execution_id = p_execution_id), 10000);
end
$$;
