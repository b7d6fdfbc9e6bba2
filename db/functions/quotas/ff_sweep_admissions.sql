-- Locks: parked executions, without waiting. Safe to run concurrently.
create or replace function ff_sweep_admissions(
    p_limit int default 200, p_lane_id text default null, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
    v_place text;
    v_key text;
    v_ids uuid[] := '{}'::uuid[];
begin
    perform ff__check_limit(p_limit, 100000);
    if p_lane_id is not null then
        perform ff__check_lane_id(p_lane_id);
    end if;
    -- One probe per policy or budget that has parked executions, however many it has.
    foreach v_place in array '{quota,budget}'::text[] loop
        v_key := '';
        while cardinality(v_ids) < p_limit loop
            select min(x.key) into v_key
              from ff_state_word w
             cross join lateral (
                   select coalesce(c.blocked_budget_id, c.quota_policy_id, '') as key
                     from ff_execution c
                    where c.limited and c.terminal_at_ms is null and c.state = w.state
                      and coalesce(c.blocked_budget_id, c.quota_policy_id, '') > v_key
                    order by 1 limit 1) x
             where w.place = v_place;
            exit when v_key is null;
            v_ids := v_ids || ff__lock_unparkable(v_key, v_place = 'budget', p_lane_id, v_now,
                                                  p_limit - cardinality(v_ids));
        end loop;
    end loop;
    open v_scan for select x.id::text from unnest(v_ids) x(id);
    select s.* into processed, errors, more
      from ff__sweep('sweep_admissions', p_limit, v_scan, p_lane_id is null) s;
end
$$;

comment on function ff_sweep_admissions(int, text) is
$$Unparks executions that wait for a quota policy or a budget: those of a policy as far as it has room and their time
has come, those of a budget when it no longer blocks. p_lane_id: on that lane only. A claim that finds nothing does the
same for its lane.

Errors: invalid_input, invalid_lane_id$$;
-- grant: ff_operator, ff_admin
