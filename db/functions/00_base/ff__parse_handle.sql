-- The fences inside handles, one for each; all NULL for anything that ff__encode_handle did not make: what was read must
-- encode to the same text. The execution is NULL when the partition is not that of its uuid: no such execution can exist.
create or replace function ff__parse_handles(p_handles text[]) returns ff_fence[]
language plpgsql stable
as $$
begin
    return array(
        select case when ff__encode_handle(p.partition, p.execution_id, p.attempt_index, p.lease_id, p.lease_epoch,
                                           p.attempt_id) = h.handle
                         and p.partition between 0 and 255 and p.attempt_index >= 0 and p.lease_epoch >= 0
                    then (case when ff__partition(p.execution_id) = p.partition then p.execution_id end,
                          '{fp:' || p.partition || '}:' || p.execution_id, p.attempt_index, p.lease_id, p.lease_epoch,
                          p.attempt_id)::ff_fence end
          from unnest(p_handles) with ordinality h(handle, n)
         cross join lateral (
               select substr(h.handle, 5, 36)::uuid as execution_id, substr(h.handle, 42, 36)::uuid as lease_id,
                      substr(h.handle, 79, 36)::uuid as attempt_id, split_part(h.handle, '.', 5)::smallint as partition,
                      split_part(h.handle, '.', 6)::int as attempt_index,
                      split_part(h.handle, '.', 7)::bigint as lease_epoch) p
         order by h.n);
exception when data_exception then
    if cardinality(p_handles) = 1 then
        return array[null::ff_fence];
    end if;
    -- One of them is no handle: one by one.
    return array(select (ff__parse_handles(array[h.handle]))[1] from unnest(p_handles) with ordinality h(handle, n)
                  order by h.n);
end
$$;

-- ff__parse_handles for one.
create or replace function ff__parse_handle(p_handle text) returns ff_fence
language plpgsql stable
as $$
begin
    return (ff__parse_handles(array[p_handle]))[1];
end
$$;
