-- The flow hook, last thing in the end of a member: notes the end in the work list and, if the flow is free, passes it on
-- at once (ff__dispatch_flow). Never waits: whoever holds a busy flow, or the next claim that finds nothing, does it.
-- p_event_id: that of the completion. The note is written even when that is muted: then it takes an id of its own.
create or replace function ff__flow_ended(e ff_exec, p_outcome text, p_event_id bigint) returns void
language plpgsql volatile
as $$
begin
    insert into ff_flow_dispatch (event_id, flow_id, execution_id, outcome, created_at_ms, next_dispatch_at_ms)
    values (coalesce(p_event_id, nextval('ff_event_id_seq')), e.flow_id, e.execution_id, p_outcome, e.now_ms, e.now_ms);
    if current_setting('ff.flow', true) = e.flow_id::text then
        return;
    elsif ff__try_flow(e.flow_id) then
        perform ff__dispatch_flow(e.flow_id);
        perform set_config('ff.flow', '', true);
    end if;
end
$$;
