-- A targeted claim or grant: the execution must be ready, or its delay over, its deadline not passed, its flow not
-- stopped.
-- Errors: execution_not_eligible (DETAIL state).
create or replace function ff__check_eligible(e ff_exec) returns void
language plpgsql stable
as $$
begin
    if e.lifecycle_phase = 'runnable'
       and (e.eligibility_state = 'eligible_now'
            or (e.eligibility_state = 'not_eligible_until_time' and e.delay_until_ms <= e.now_ms))
       and (e.deadline_at_ms is null or e.deadline_at_ms > e.now_ms)
       and (e.flow_id is null or ff__flow_claimable(e.flow_id)) then
        return;
    end if;
    perform ff__raise('execution_not_eligible',
                      format('execution %s is %s', ff__wire_id(e.partition_key, e.execution_id),
                             case when e.deadline_at_ms <= e.now_ms then 'past its deadline'
                                  when not ff__flow_claimable(e.flow_id) then 'in a flow that hands out no work'
                                  else e.public_state end),
                      jsonb_build_object(
                          'execution_id', ff__wire_id(e.partition_key, e.execution_id), 'public_state', e.public_state,
                          'lifecycle_phase', e.lifecycle_phase, 'eligibility_state', e.eligibility_state,
                          'delay_until_ms', e.delay_until_ms, 'deadline_at_ms', e.deadline_at_ms,
                          'flow_claimable', ff__flow_claimable(e.flow_id)));
end
$$;
