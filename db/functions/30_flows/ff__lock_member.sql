-- ff__lock_execution for an operation that reads or changes the graph of its flow, if it has one: locks the flow first
-- (ff__open_flow), then the execution; p_children: together with all that wait for it, in the order of their ids, as
-- batches lock them. Errors: invalid_execution_id, execution_not_found.
create or replace function ff__lock_member(p_execution_id text, p_children boolean default false) returns ff_exec
language plpgsql volatile
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
    v_flow uuid := (select c.flow_id from ff_exec_core c where c.execution_id = v_id);
    e ff_exec;
begin
    if v_flow is not null then
        perform ff__open_flow(v_flow);
        if p_children then
            perform from (
                select c.execution_id from ff_exec_core c
                 where c.execution_id = any (array(select d.downstream_eid from ff_edge d
                                                    where d.upstream_eid = v_id) || v_id)
                 order by c.execution_id for update) x;
        end if;
    end if;
    e := ff__open(v_id);
    if e.execution_id is null then
        perform ff__not_found(p_execution_id);
    elsif e.flow_id is distinct from v_flow then
        -- It joined a flow since we looked.
        perform ff__open_flow(e.flow_id);
    end if;
    return e;
end
$$;
