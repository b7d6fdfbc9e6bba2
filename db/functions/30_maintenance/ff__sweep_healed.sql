-- Deletes the error rows of rows that need no retry: processed, by this or another transaction, or gone.
create or replace function ff__sweep_healed(p_name text, p_row_keys text[]) returns void
language plpgsql volatile
as $$
begin
    if p_row_keys <> '{}' and ff__sweep_guard(p_name) then
        delete from ff_reconciler_error x where x.name = p_name and x.row_key = any (p_row_keys);
    end if;
end
$$;
