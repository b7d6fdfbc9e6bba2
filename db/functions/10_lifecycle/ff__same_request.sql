-- Whether an execution with this id, which the caller chose, exists: NULL if not, its id if it came from the same request
-- in the same namespace. p_idempotency_key: the key of the request.
-- Errors: execution_id_conflict, also if the execution was deleted and something of it is still kept.
create or replace function ff__same_request(
    p_execution_id uuid, p_namespace text, p_request_hash bytea, p_idempotency_key text
) returns uuid
language plpgsql volatile
as $$
declare
    v_namespace text;
    v_hash bytea;
begin
    select i.namespace, i.request_hash into v_namespace, v_hash from ff_exec_input i where i.execution_id = p_execution_id;
    if not found then
        if ff__id_kept(p_execution_id, p_namespace, p_idempotency_key) then
            perform ff__raise('execution_id_conflict',
                              'the id is that of a deleted execution of which events, children or a key are still kept',
                              jsonb_build_object('execution_id',
                                                 ff__wire_id(ff__partition(p_execution_id), p_execution_id)));
        end if;
        return null;
    elsif v_hash <> p_request_hash or v_namespace <> p_namespace then
        perform ff__raise('execution_id_conflict', 'an execution with this id came from a different request',
                          jsonb_build_object('execution_id',
                                             ff__wire_id(ff__partition(p_execution_id), p_execution_id)));
    end if;
    return p_execution_id;
end
$$;
