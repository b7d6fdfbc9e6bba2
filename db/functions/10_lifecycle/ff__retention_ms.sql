-- How long an execution is kept after its end: as its policy says (p_own_ms), else by how it ended. Written so that it is
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
