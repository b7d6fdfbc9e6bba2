-- Locks: the execution. Of concurrent calls one returns cancelled, the others already_cancelled. Replay by the lease
-- holder after the execution was replayed: the recorded outcome, nothing written.
create or replace function ff_cancel_execution(
    p_execution_id text,
    p_reason text default '',
    p_source text default 'operator_override',
    p_lease_id uuid default null,
    p_lease_epoch bigint default null,
    p_attempt_id uuid default null,
    out outcome text,
    out public_state text,
    out cancelled_from text
)
language plpgsql volatile security definer
as $$
declare
    e ff_exec;
begin
    if p_source is null or p_source not in ('operator_override', 'lease_holder', 'flow_cascade', 'system_timeout') then
        perform ff__invalid('p_source', 'must be operator_override, lease_holder, flow_cascade or system_timeout');
    end if;
    e := ff__lock_execution(p_execution_id);
    cancelled_from := e.public_state;
    public_state := 'cancelled';
    if e.public_state = 'cancelled' then
        outcome := 'already_cancelled';
        return;
    elsif e.lifecycle_phase = 'terminal' then
        perform ff__raise_already_terminal(e);
    end if;
    outcome := 'cancelled';
    if p_source = 'lease_holder' then
        e := ff__fence(ff__fence_from_arguments(p_execution_id, null, p_lease_id, p_lease_epoch, p_attempt_id),
                       'cancel');
        if e.execution_id is null then
            cancelled_from := 'active';
            return;
        end if;
    elsif p_source = 'operator_override' then
        e := ff__emit(e, 'operator', 'cancelled', left(coalesce(p_reason, ''), 4096),
                      jsonb_build_object('cancelled_from', e.public_state));
    end if;
    perform ff__cancel(e, case p_source when 'lease_holder' then 'cancel' else 'override' end,
                       left(coalesce(p_reason, ''), 4096), p_source);
end
$$;

comment on function ff_cancel_execution(text, text, text, uuid, bigint, uuid) is
$$Cancels an execution in any state that is not terminal. p_source: operator_override, flow_cascade and system_timeout
need no fence; lease_holder needs the complete fence. A live lease ends: later calls of its holder are rejected.

Outcomes: outcome = cancelled | already_cancelled
Errors: invalid_input, invalid_execution_id, execution_not_found, execution_already_terminal, fence_required
Errors: partial_fence, execution_not_active, stale_lease, lease_revoked, lease_expired$$;
-- grant: ff_producer, ff_operator, ff_admin
