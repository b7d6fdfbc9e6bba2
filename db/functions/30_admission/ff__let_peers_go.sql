-- Slots of a policy became free: as many executions that were parked for want of one are settled, highest priority and
-- then oldest first; what maintenance has failed on and put off is passed over. Never waits.
create or replace function ff__let_peers_go(p_quota_policy_id text, p_slots int) returns void
language plpgsql volatile
as $$
declare
    v_id uuid;
    v_failed boolean := exists (select from ff_reconciler_error x
                                 where x.name = 'sweep_admissions' and x.row_key <> '');
    e ff_exec;
begin
    for v_id in
        select c.execution_id from ff_exec_core c
         where c.limited and c.eligibility_state = 'blocked_by_quota'
           and case c.eligibility_state when 'blocked_by_budget' then c.blocked_budget_id else c.quota_policy_id end
               = p_quota_policy_id
           and (c.not_before_ms is not null)::int = 0
           and not (v_failed and ff__is_backed_off('sweep_admissions', c.execution_id::text))
         order by c.priority desc, c.created_at_ms, c.execution_id
         limit p_slots for update skip locked
    loop
        e := ff__open(v_id);
        if e.flow_id is not null and e.loose_ends then
            -- It may have to end instead, and its stream with it.
            e := ff__try_open(v_id);
            continue when e.execution_id is null;
        end if;
        perform ff__requeue(e);
    end loop;
end
$$;
