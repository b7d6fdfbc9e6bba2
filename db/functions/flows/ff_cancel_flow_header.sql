-- Locks: the flow (waits for it). Repeatable: already_terminal with what is stored.
create or replace function ff_cancel_flow_header(
    p_flow_id uuid,
    p_policy text default 'cancel_all',
    p_reason text default 'flow_cancelled',
    p_cancelled_by text default 'operator',
    p_grace_ms bigint default 30000,
    out outcome text,
    out cancellation_policy text,
    out cancel_reason text,
    out member_execution_ids text[]
)
language plpgsql volatile security definer
as $$
declare
    f ff_flow_core;
begin
    if p_grace_ms is null then
        perform ff__invalid('p_grace_ms', 'must not be null');
    end if;
    perform ff__check_time('p_grace_ms', p_grace_ms, p_from_ms => ff__now_ms());
    outcome := ff__cancel_flow(p_flow_id, p_policy, p_reason, p_cancelled_by);
    select x.* into f from ff_flow_core x where x.flow_id = p_flow_id;
    if outcome <> 'already_terminal' then
        perform ff__add_cancel_backlog(f, p_grace_ms);
    end if;
    cancellation_policy := f.cancellation_policy;
    cancel_reason := f.cancel_reason;
    perform ff__close_flow(p_flow_id);
    member_execution_ids := array(
        select ff__wire_id(f.partition_key, m.execution_id) from ff_cancel_backlog_member m
         where m.flow_id = p_flow_id order by m.execution_id
         limit case when outcome = 'already_terminal' then 1000 end);
end
$$;

comment on function ff_cancel_flow_header(uuid, text, text, text, bigint) is
$$Cancels a flow like ff_cancel_flow, but ends no member before p_grace_ms have passed: until then the caller can end
the members in its own way and acknowledge each with ff_ack_cancel_member. member_execution_ids: members still in the
backlog.

Outcomes: outcome = cancelled | escalated | already_terminal
Outcomes: cancellation_policy = cancel_all | cancel_pending | cancel_flow_only
Nullable: cancellation_policy, cancel_reason
Errors: invalid_input, flow_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
