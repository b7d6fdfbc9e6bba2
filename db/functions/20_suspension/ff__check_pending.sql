-- A waitpoint that a suspension wants to bind: pending, of this execution and attempt, not past its time.
-- Errors: waitpoint_not_found, invalid_waitpoint_for_execution, waitpoint_not_pending, pending_waitpoint_expired.
create or replace function ff__check_pending(e ff_exec, p_waitpoint_id uuid) returns void
language plpgsql stable
as $$
declare
    v_detail jsonb := jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'waitpoint_id', p_waitpoint_id);
    w ff_waitpoint;
begin
    select x.* into w from ff_waitpoint x where x.waitpoint_id = p_waitpoint_id;
    if not found then
        perform ff__raise('waitpoint_not_found', format('no waitpoint %s', p_waitpoint_id), v_detail);
    elsif w.execution_id <> e.execution_id or w.attempt_index <> e.current_attempt_index then
        perform ff__raise('invalid_waitpoint_for_execution',
                          format('waitpoint %s belongs to another execution or attempt', p_waitpoint_id), v_detail);
    elsif w.state <> 'pending' then
        perform ff__raise('waitpoint_not_pending', format('waitpoint %s is %s', p_waitpoint_id, w.state),
                          v_detail || jsonb_build_object('state', w.state, 'close_reason', w.close_reason));
    elsif w.expires_at_ms <= e.now_ms then
        perform ff__raise('pending_waitpoint_expired',
                          format('waitpoint %s expired %s ms ago', p_waitpoint_id, e.now_ms - w.expires_at_ms),
                          v_detail || jsonb_build_object('expires_at_ms', w.expires_at_ms));
    end if;
end
$$;
