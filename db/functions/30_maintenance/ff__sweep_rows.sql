-- What a step does with these rows: all of them, in one subtransaction of the caller. Returns how many were processed.
create or replace function ff__sweep_rows(p_name text, p_keys text[], p_now_ms bigint, p_keep_ms bigint[]) returns int
language plpgsql volatile
as $$
declare
    v_key text;
    v_done int := 0;
begin
    if p_name = 'trim_retention' then
        return ff__trim_rows(p_keys, p_now_ms, p_keep_ms);
    end if;
    foreach v_key in array p_keys loop
        v_done := v_done + case
            when p_name = 'sweep_expired' then ff__sweep_expired_row(v_key, p_now_ms)
            when p_name = 'drain_sibling_cancels' then ff__drain_sibling(v_key)
            when p_name in ('sweep_budget_resets', 'sweep_budget_breaches', 'sweep_terminal_spend')
                then ff__sweep_budget(p_name, v_key)
            else ff__sweep_row(p_name, v_key) end::int;
    end loop;
    return v_done;
end
$$;
