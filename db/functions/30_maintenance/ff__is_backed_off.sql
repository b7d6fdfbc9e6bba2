-- Whether a row of a step has failed and is not due for a retry yet; without p_now_ms, whether it has failed at all.
create or replace function ff__is_backed_off(p_name text, p_row_key text, p_now_ms bigint default null) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from ff_reconciler_error x
                    where x.name = p_name and x.row_key = p_row_key
                      and (p_now_ms is null or x.next_retry_at_ms > p_now_ms));
end
$$;
