-- An event of a worker.
create or replace function ff__emit_worker(
    p_event_type text, p_namespace text, p_worker_id text, p_worker_instance_id text, p_now_ms bigint, p_ord bigint,
    p_reason text default null
) returns void
language plpgsql volatile
as $$
declare
    v_gen int := ff__event_gate('worker', p_event_type);
begin
    if v_gen is not null then
        insert into ff_event (
            family, event_type, gen, ord, occurred_at_ms, namespace, worker_id, worker_instance_id, reason)
        values (
            'worker', p_event_type, v_gen, p_ord, p_now_ms, p_namespace, p_worker_id, p_worker_instance_id, p_reason);
    end if;
end
$$;
