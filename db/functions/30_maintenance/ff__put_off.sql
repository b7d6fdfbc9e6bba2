-- Whether a row of a step has failed and waits for its next try.
create or replace function ff__put_off(p_name text, p_row_key text) returns boolean
language plpgsql stable
as $$
begin
    return exists (select from ff_reconciler_error x where x.name = p_name and x.row_key = p_row_key);
end
$$;
