-- An event of a worker.
create or replace function ff__emit_worker(
    p_event_type text, p_namespace text, p_worker_id text, p_worker_instance_id text, p_now_ms bigint, p_ord bigint,
    p_reason text default null
) returns void
language plpgsql volatile
as $$
begin
    perform ff__emit_other(ff__event_gate('worker', p_event_type), 'worker', p_event_type, p_now_ms, p_ord, p_reason,
                           p_namespace => p_namespace, p_worker_id => p_worker_id,
                           p_worker_instance_id => p_worker_instance_id);
end
$$;
