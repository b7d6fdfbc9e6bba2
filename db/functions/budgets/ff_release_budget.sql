-- Locks: the budget. Repeatable: nothing_to_release.
create or replace function ff_release_budget(
    p_budget_id text, p_execution_id text, out outcome text, out dimensions int
)
language plpgsql volatile security definer
as $$
declare
    v_spender uuid := ff__slot_key(p_execution_id);
begin
    dimensions := ff__release_spend(ff__lock_budget(p_budget_id), v_spender);
    outcome := case dimensions when 0 then 'nothing_to_release' else 'released' end;
end
$$;

comment on function ff_release_budget(text, text) is
$$Releases what ff_record_spend recorded for an execution since the last reset of the budget; dimensions: the number of
dimensions released. Usage reported by ff_report_usage is consumed and stays.

Outcomes: outcome = released | nothing_to_release
Errors: invalid_input, invalid_execution_id, budget_not_found$$;
-- grant: ff_producer, ff_worker, ff_operator, ff_admin
