-- The answer to a suspension that is recorded: one row per waitpoint it bound, by ordinal, with their tokens.
create or replace function ff__suspension_rows(
    e ff_exec, s ff_suspension, p_outcome text, p_replayed boolean, p_handle text
) returns setof ff_suspend_row
language plpgsql volatile
as $$
declare
    w ff_waitpoint;
begin
    for v_n in 1..cardinality(s.waitpoint_ids) loop
        select x.* into w from ff_waitpoint x where x.waitpoint_id = s.waitpoint_ids[v_n];
        return next (p_outcome, p_replayed, s.suspension_id, v_n - 1, w.waitpoint_id, w.waitpoint_key,
                     ff__show_token(e, w), s.timeout_at_ms, p_handle)::ff_suspend_row;
    end loop;
end
$$;
