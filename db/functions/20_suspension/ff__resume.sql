-- The one way out of a suspension that goes on: it closes as its policy says, the attempt stays as it is, and the
-- execution becomes runnable, at once or after p_delay_ms. Returns the public state.
create or replace function ff__resume(
    e ff_exec, s ff_suspension, p_trigger text, p_delay_ms bigint, p_close_reason text, p_by text default null,
    p_closer uuid default null
) returns text
language plpgsql volatile
as $$
declare
    v_closed int := ff__close_suspension(e, s, p_close_reason, p_trigger, p_by, p_closer);
begin
    e := ff__emit_wait(e, 'suspension', 'resumed', p_trigger, s.suspension_id, s.waitpoint_ids[1],
                       jsonb_strip_nulls(jsonb_build_object('close_reason', p_close_reason,
                                                            'delay_ms', nullif(p_delay_ms, 0), 'resumed_by', p_by)));
    return ff__requeue(e, null, null, e.now_ms + nullif(p_delay_ms, 0), 'resume_delay',
                       p_closed_waitpoints => v_closed);
end
$$;
