-- Locks: the execution. Repeatable.
create or replace function ff_close_waitpoint(
    p_handle text,
    p_waitpoint_id uuid,
    p_reason text default 'proactive_close',
    out outcome text,
    out close_reason text
)
language plpgsql volatile security definer
as $$
declare
    v_fence ff_fence := ff__decode_handle(p_handle);
    v_detail jsonb := jsonb_build_object('execution_id', v_fence.wire_id, 'waitpoint_id', p_waitpoint_id);
    e ff_exec;
    w ff_waitpoint;
begin
    if p_waitpoint_id is null then
        perform ff__invalid('p_waitpoint_id', 'must not be null');
    end if;
    perform ff__check_chars('p_reason', p_reason, 1, ff__engine_limit('max_name_chars'));
    e := ff__fence(v_fence);
    select x.* into w from ff_waitpoint x where x.waitpoint_id = p_waitpoint_id;
    if not found then
        perform ff__raise('waitpoint_not_found', format('no waitpoint %s', p_waitpoint_id), v_detail);
    elsif w.execution_id <> e.execution_id then
        perform ff__raise('invalid_waitpoint_for_execution',
                          format('waitpoint %s belongs to another execution', p_waitpoint_id), v_detail);
    elsif w.state in ('closed', 'expired') then
        outcome := 'already_closed';
        close_reason := w.close_reason;
        return;
    elsif w.state <> 'pending' then
        perform ff__raise('waitpoint_not_pending', format('waitpoint %s is %s', p_waitpoint_id, w.state),
                          v_detail || jsonb_build_object('state', w.state));
    end if;
    perform ff__end_pending(e, p_waitpoint_id, 'closed', p_reason);
    e := ff__emit_wait(e, 'suspension', 'waitpoint_closed', p_reason, null, p_waitpoint_id);
    outcome := 'closed';
    close_reason := p_reason;
end
$$;

comment on function ff_close_waitpoint(text, uuid, text) is
$$Closes a pending waitpoint when the worker decides not to suspend. Buffered signals are discarded, later signals are
rejected.

Outcomes: outcome = closed | already_closed
Errors: invalid_input, invalid_handle, execution_not_found, execution_not_active, stale_lease, lease_revoked
Errors: lease_expired, waitpoint_not_found, invalid_waitpoint_for_execution, waitpoint_not_pending$$;
-- grant: ff_worker, ff_admin
