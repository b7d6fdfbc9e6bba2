-- What the end of its upstream makes of an edge.
create or replace function ff__edge_result(p_kind text, p_outcome text) returns text
language sql immutable parallel safe
as $$
    select case when p_outcome = 'success' or p_kind = 'any_terminal' then 'satisfied'
                when p_outcome = 'skipped' then 'skipped' else 'failed' end
$$;
