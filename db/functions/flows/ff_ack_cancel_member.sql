-- Locks: the flow, the member (waits for them). Repeatable: not_pending.
create or replace function ff_ack_cancel_member(
    p_flow_id uuid, p_execution_id text, p_force boolean default false, out outcome text, out remaining int
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
    e ff_exec;
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    elsif p_force is null then
        perform ff__invalid('p_force', 'must not be null');
    end if;
    outcome := 'not_pending';
    if (ff__open_flow(p_flow_id)).flow_id is not null then
        if exists (select from ff_cancel_backlog_member m where m.flow_id = p_flow_id and m.execution_id = v_id) then
            e := ff__open(v_id, true);
            if e.lifecycle_phase <> 'terminal' and not p_force then
                perform ff__raise('execution_not_terminal',
                                  format('execution %s is %s', p_execution_id, e.public_state),
                                  jsonb_build_object('execution_id', p_execution_id, 'public_state', e.public_state));
            end if;
            outcome := 'acked';
            if e.lifecycle_phase <> 'terminal' then
                update ff_flow_core f set forced_acks = f.forced_acks + 1, last_mutation_at_ms = e.now_ms
                 where f.flow_id = p_flow_id;
            end if;
            delete from ff_cancel_backlog_member m where m.flow_id = p_flow_id and m.execution_id = v_id;
            delete from ff_cancel_backlog b
             where b.flow_id = p_flow_id
               and not exists (select from ff_cancel_backlog_member m where m.flow_id = p_flow_id);
        end if;
        perform ff__close_flow(p_flow_id);
    end if;
    select count(*) into remaining from ff_cancel_backlog_member m where m.flow_id = p_flow_id;
end
$$;

comment on function ff_ack_cancel_member(uuid, text, boolean) is
$$Acknowledges that a member of a cancelled flow has ended. p_force: also if it has not ended; ff_drain_cancel_backlog
then no longer ends it. remaining: members still in the backlog.

Outcomes: outcome = acked | not_pending
Errors: invalid_input, invalid_execution_id, execution_not_terminal$$;
-- grant: ff_producer, ff_operator, ff_admin
