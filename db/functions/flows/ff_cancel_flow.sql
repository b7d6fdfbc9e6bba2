-- Locks: the flow (waits for it), its members (skip locked). Repeatable: already_terminal with what is stored.
create or replace function ff_cancel_flow(
    p_flow_id uuid,
    p_policy text default 'cancel_all',
    p_reason text default 'flow_cancelled',
    p_cancelled_by text default 'operator',
    p_max_members int default 1000,
    out outcome text,
    out cancellation_policy text,
    out cancel_reason text,
    out member_count int,
    out cancelled_count int,
    out pending_count int,
    out running_count int
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint;
    v_owed int := 0;
    f ff_flow_core;
begin
    if p_max_members is null or p_max_members not between 0 and 100000 then
        perform ff__invalid('p_max_members', 'must be between 0 and 100000',
                            jsonb_build_object('value', p_max_members));
    end if;
    outcome := ff__cancel_flow(p_flow_id, p_policy, p_reason, p_cancelled_by);
    select x.* into f from ff_flow_core x where x.flow_id = p_flow_id;
    cancellation_policy := f.cancellation_policy;
    cancel_reason := f.cancel_reason;
    member_count := f.node_count;
    if outcome <> 'already_terminal' and f.cancellation_policy <> 'cancel_flow_only' then
        v_now := ff__now_ms();
        v_owed := ff__cancel_members(f, array(
            select c.execution_id from ff_execution c
             where c.flow_id = p_flow_id and c.terminal_at_ms is null
               and ff__is_cancel_covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now)
             order by c.execution_id limit p_max_members for no key update skip locked));
        perform ff__add_cancel_backlog(f, 0);
        select v_owed + count(*) into v_owed
          from ff_cancel_backlog_member m join ff_execution c on c.execution_id = m.execution_id
         where m.flow_id = p_flow_id and c.terminal_at_ms is null;
    end if;
    perform ff__close_flow(p_flow_id, greatest(1000, p_max_members));
    v_now := ff__now_ms();
    select coalesce(sum(x.covered::int), 0), coalesce(sum((not x.covered)::int), 0)
      into pending_count, running_count
      from (select ff__is_cancel_covered(f.cancellation_policy, c.state, c.lease_expires_at_ms, v_now) as covered
              from ff_cancel_backlog_member m join ff_execution c on c.execution_id = m.execution_id
             where m.flow_id = p_flow_id and c.terminal_at_ms is null) x;
    cancelled_count := case when outcome = 'already_terminal' then 0 else v_owed - pending_count - running_count end;
    if outcome = 'cancelled' and pending_count > 0 then
        outcome := 'cancellation_scheduled';
    end if;
end
$$;

comment on function ff_cancel_flow(uuid, text, text, text, int) is
$$Cancels a flow permanently. cancel_all: cancels every member that has not ended; cancel_pending: cancels members
without a live lease, the others may complete but cannot wait or be retried; cancel_flow_only: members continue, the
graph is frozen.
Up to p_max_members (0 to 100000) members end in this call; the rest (pending_count) is no longer claimable and is ended
by ff_drain_cancel_backlog. A later call with a stronger policy replaces a weaker one (escalated).

Outcomes: outcome = cancelled | cancellation_scheduled | escalated | already_terminal
Outcomes: cancellation_policy = cancel_all | cancel_pending | cancel_flow_only
Nullable: cancellation_policy, cancel_reason
Errors: invalid_input, flow_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
