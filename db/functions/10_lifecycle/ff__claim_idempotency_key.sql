-- Takes an idempotency key for a new execution, or finds whose it is. NULL: the key is ours now (fresh, or taken over
-- after its window). Otherwise the execution that has it. Waits for a concurrent holder of the key to commit or roll
-- back; the clock is read after that. Errors: idempotency_conflict (a live key of a different request).
create or replace function ff__claim_idempotency_key(
    p_namespace text, p_key text, p_window_ms bigint, p_execution_id uuid, p_request_hash bytea
) returns uuid
language plpgsql volatile
as $$
declare
    v_now bigint;
    k ff_idempotency;
begin
    loop
        v_now := ff__now_ms();
        insert into ff_idempotency (namespace, idempotency_key, partition_key, execution_id, expires_at_ms, request_hash)
        values (p_namespace, p_key, ff__partition(p_execution_id), p_execution_id, ff__time_after(v_now, p_window_ms), p_request_hash)
        on conflict do nothing;
        if found then
            return null;
        end if;
        select i.* into k from ff_idempotency i
         where i.namespace = p_namespace and i.idempotency_key = p_key for update;
        -- Not found: swept since the insert met it. Try again.
        exit when found;
    end loop;
    v_now := ff__now_ms();
    if k.expires_at_ms <= v_now then
        update ff_idempotency i
           set partition_key = ff__partition(p_execution_id), execution_id = p_execution_id,
               expires_at_ms = ff__time_after(v_now, p_window_ms), request_hash = p_request_hash
         where i.namespace = p_namespace and i.idempotency_key = p_key;
        return null;
    elsif k.request_hash <> p_request_hash then
        perform ff__raise('idempotency_conflict', 'the idempotency key belongs to a different request',
                          jsonb_build_object('execution_id', ff__wire_id(k.partition_key, k.execution_id),
                                             'namespace', p_namespace));
    end if;
    return k.execution_id;
end
$$;
