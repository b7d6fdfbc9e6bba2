-- Slots of a policy became free: as many executions that were parked for want of one are settled, in the order of rank;
-- what maintenance has failed on and put off is passed over, and so is what others have locked, up to a hundred of each
-- state (ff_sweep_admissions finds the rest). Never waits.
create or replace function ff__let_peers_go(p_quota_policy_id text, p_slots int) returns void
language plpgsql volatile
as $$
declare
    v_ids uuid[];
    v_id uuid;
    v_failed boolean := exists (select from ff_reconciler_error x
                                 where x.name = 'sweep_admissions' and x.row_key <> '');
    e ff_exec;
begin
    v_ids := array(
        select x.execution_id
          from ff_state_word w
         cross join lateral (
               select y.execution_id
                 from ff_execution y
                where y.limited and y.terminal_at_ms is null and y.state = w.state
                  and coalesce(y.blocked_budget_id, y.quota_policy_id, '') = p_quota_policy_id
                  and (y.not_before_ms is not null)::int = 0
                  and not (v_failed and ff__is_backed_off('sweep_admissions', y.execution_id::text))
                order by y.rank limit p_slots + 100) x
         where w.place = 'quota');
    if v_ids = '{}' then
        return;
    end if;
    for v_id in
        select c.execution_id
          from unnest(v_ids) u(id) join ff_execution c on c.execution_id = any (array[u.id])
           and c.state in ('quota', 'quota_retry', 'quota_replay', 'quota_resume')
           and c.quota_policy_id = p_quota_policy_id
         order by c.rank limit p_slots for no key update of c skip locked
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
