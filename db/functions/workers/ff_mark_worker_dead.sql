-- Locks: the registration; with p_revoke_leases the executions that the worker holds, one by one in the order of their
-- ids.
create or replace function ff_mark_worker_dead(
    p_worker_instance_id text,
    p_reason text default '',
    p_namespace text default 'default',
    p_revoke_leases boolean default false,
    out outcome text,
    out leases_revoked int
)
language plpgsql volatile security definer
as $$
declare
    v_id uuid;
    v_ord bigint;
    v_worker text;
    e ff_exec;
begin
    perform ff__check_text('p_worker_instance_id', p_worker_instance_id, 1, 256);
    perform ff__check_text('p_reason', p_reason, 0, 256);
    perform ff__check_text('p_namespace', p_namespace, 1, 64);
    if p_revoke_leases is null then
        perform ff__invalid('p_revoke_leases', 'must not be null');
    end if;
    leases_revoked := 0;
    if p_revoke_leases then
        for v_id in
            select c.execution_id
              from ff_queue q
             cross join lateral (
                   select x.execution_id from ff_execution x
                    where x.queue_id = q.queue_id and x.due_at_ms is not null and x.state = 'leased'
                      and x.worker_instance_id = p_worker_instance_id
                   offset 0) c
             where q.namespace = p_namespace
             order by c.execution_id
        loop
            e := ff__open(v_id);
            if e.ownership_state = 'leased' and e.worker_instance_id = p_worker_instance_id
               and e.lease_expires_at_ms > e.now_ms then
                perform ff__revoke(e, 'worker_dead');
                leases_revoked := leases_revoked + 1;
            end if;
        end loop;
    end if;
    delete from ff_worker_registry x
     where x.namespace = p_namespace and x.worker_instance_id = p_worker_instance_id
    returning x.worker_id, greatest(pg_current_xact_id()::text::bigint, x.last_event_ord) into v_worker, v_ord;
    outcome := case when v_worker is null then 'not_registered' else 'marked' end;
    if outcome = 'marked' then
        perform ff__emit_worker('marked_dead', p_namespace, v_worker, p_worker_instance_id, ff__now_ms(), v_ord,
                                p_reason);
    end if;
end
$$;

comment on function ff_mark_worker_dead(text, text, text, boolean) is
$$Removes a worker's registration. With p_revoke_leases every live lease of that instance in that namespace is revoked,
also if the worker is not registered, so that other workers can claim its executions at once. Repeatable.

Outcomes: outcome = marked | not_registered
Errors: invalid_input$$;
-- grant: ff_worker, ff_admin
