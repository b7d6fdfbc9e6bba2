-- Closes a suspension that goes on, with its waitpoints and signals as its policy says; an operator's resume always
-- closes the waitpoints. p_closer is the signal that came last. Returns how many waitpoints were closed.
create or replace function ff__close_suspension(
    e ff_exec, s ff_suspension, p_close_reason text, p_trigger text default null, p_by text default null,
    p_closer uuid default null
) returns int
language plpgsql volatile
as $$
declare
    v_close boolean := p_close_reason = 'operator_resume' or (s.policy -> 'close_waitpoint_on_resume')::boolean;
    v_consume boolean := (s.policy -> 'consume_matched_signals')::boolean;
    v_keep boolean := not v_close and (s.policy -> 'retain_signal_buffer_until_closed')::boolean;
    v_count int;
begin
    update ff_suspension x set
        closed_at_ms = e.now_ms, close_reason = p_close_reason, resume_trigger = p_trigger, resumed_by = p_by,
        outcome = case p_close_reason when 'already_satisfied' then p_close_reason else x.outcome end,
        satisfied_at_ms = case when p_close_reason in ('resumed', 'already_satisfied') then e.now_ms end,
        closer_signal_id = p_closer,
        last_signal_at_ms = case when p_closer is null then x.last_signal_at_ms else e.now_ms end
     where x.suspension_id = s.suspension_id;
    update ff_signal g set
        consumed_by = case when g.matched then s.suspension_id end, discarded = not g.matched
     where g.suspension_id = s.suspension_id and g.consumed_by is null and not g.discarded
       and case when g.matched then v_consume else not v_keep end;
    if v_close then
        update ff_waitpoint w set state = 'closed', closed_at_ms = e.now_ms, close_reason = p_close_reason
         where w.waitpoint_id = any (s.waitpoint_ids);
        get diagnostics v_count = row_count;
        return v_count;
    end if;
    update ff_waitpoint w set
        state = 'pending', suspension_id = null, ordinal = null, expires_at_ms = null, required_signal_names = '{}'
     where w.waitpoint_id = any (s.waitpoint_ids);
    return 0;
end
$$;
