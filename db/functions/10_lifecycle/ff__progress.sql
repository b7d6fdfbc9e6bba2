-- Stores progress on the current attempt of an execution whose fence was checked.
create or replace function ff__progress(
    e ff_exec, p_percent int, p_message text, out progress_pct int, out progress_updated_at_ms bigint
)
language plpgsql volatile
as $$
begin
    if p_percent not between 0 and 100 then
        perform ff__invalid('p_percent', 'must be between 0 and 100', jsonb_build_object('value', p_percent));
    end if;
    update ff_execution c set
        progress_pct = coalesce(p_percent, c.progress_pct),
        progress_message = coalesce(left(p_message, 4096), c.progress_message),
        progress_updated_at_ms = e.now_ms
     where c.execution_id = e.execution_id
    returning c.progress_pct, c.progress_updated_at_ms into progress_pct, progress_updated_at_ms;
end
$$;
