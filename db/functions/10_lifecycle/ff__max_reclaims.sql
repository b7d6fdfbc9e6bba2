-- How often the crashed work of an execution may be handed to another worker, by its stored policy.
create or replace function ff__max_reclaims(p_execution_id uuid) returns int
language sql stable
as $$
    select coalesce((select (i.policy -> 'max_reclaim_count')::int from ff_exec_input i
                      where i.execution_id = p_execution_id), 100)
$$;
