-- What the counters of an edge group decide. k is 1 for any_of. A quorum that has fewer edges than it needs is pending:
-- the graph may still grow.
create or replace function ff__group_state(
    p_policy text, p_k int, p_edges int, p_success int, p_failed int, p_skipped int
) returns text
language sql immutable parallel safe
as $$
    select case
        when p_policy = 'all_of' then
            case when p_failed + p_skipped > 0 then 'impossible'
                 when p_edges > 0 and p_success = p_edges then 'satisfied' else 'pending' end
        when p_success >= coalesce(p_k, 1) then 'satisfied'
        when p_edges >= coalesce(p_k, 1) and p_failed + p_skipped > p_edges - coalesce(p_k, 1) then 'impossible'
        else 'pending' end
$$;
