-- Whether a row of a step has failed and waits for its next try; with p_now_ms, whose time has not come.
create or replace function ff__put_off(p_name text, p_row_key text, p_now_ms bigint default null) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from ff_reconciler_error x
                    where x.name = p_name and x.row_key = p_row_key
                      and (p_now_ms is null or x.next_retry_at_ms > p_now_ms));
end
$$;
