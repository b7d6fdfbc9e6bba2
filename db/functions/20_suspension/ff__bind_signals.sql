-- The signals that pending waitpoints have buffered now belong to the suspension that binds them. One that matched an
-- earlier suspension and does not match here stays with that one, and so does the signal of a timeout. Returns whether they satisfy the condition.
create or replace function ff__bind_signals(
    e ff_exec, p_suspension_id uuid, p_condition jsonb, p_waitpoint_ids uuid[]
) returns boolean
language plpgsql volatile
as $$
declare
    v_last bigint;
begin
    with bound as (
        update ff_signal s set suspension_id = p_suspension_id, matched = ff__accepts(p_condition, w.waitpoint_key, s.signal_name)
          from ff_waitpoint w
         where s.execution_id = e.execution_id and s.waitpoint_id = any (p_waitpoint_ids) and w.waitpoint_id = s.waitpoint_id
           and s.consumed_by is null and not s.discarded and s.source_type <> 'engine'
           and (s.matched is not true or ff__accepts(p_condition, w.waitpoint_key, s.signal_name))
        returning s.accepted_at_ms)
    select max(x.accepted_at_ms) into v_last from bound x;
    if v_last is null then
        return false;
    end if;
    update ff_suspension s set last_signal_at_ms = v_last where s.suspension_id = p_suspension_id;
    update ff_waitpoint w set matched_count = x.matched
      from (select s.waitpoint_id, count(*) filter (where s.matched) as matched from ff_signal s
             where s.execution_id = e.execution_id and s.waitpoint_id = any (p_waitpoint_ids)
             group by s.waitpoint_id) x
     where w.waitpoint_id = x.waitpoint_id;
    return ff__satisfied(p_condition, ff__seen_signals(p_suspension_id));
end
$$;
