create or replace function ff_list_workers(
    p_namespace text default null, p_after text default null, p_limit int default 100
) returns table (
    cursor text, namespace text, worker_instance_id text, worker_id text, lanes text[], capabilities text[],
    last_heartbeat_ms bigint, liveness_ttl_ms bigint, expires_at_ms bigint, registered_at_ms bigint, alive boolean
)
language plpgsql stable security definer
as $$
declare
    v_at int := position(' ' in p_after);
    v_namespace text;
    v_instance text;
begin
    perform ff__check_limit(p_limit);
    if p_after is not null then
        -- Format: <length of namespace> <namespace><instance>; neither part needs quoting.
        if p_after !~ '^([1-9]|[1-5][0-9]|6[0-4]) ' or length(p_after) <= v_at + left(p_after, v_at - 1)::int then
            perform ff__raise('invalid_cursor', 'not a cursor of this list',
                              jsonb_build_object('cursor', left(p_after, 80)));
        end if;
        v_namespace := substr(p_after, v_at + 1, left(p_after, v_at - 1)::int);
        v_instance := substr(p_after, v_at + 1 + length(v_namespace));
    end if;
    return query
        select length(w.namespace)::text || ' ' || w.namespace || w.worker_instance_id, w.namespace,
               w.worker_instance_id, w.worker_id, w.lanes, w.capabilities, w.last_heartbeat_ms, w.liveness_ttl_ms,
               w.last_heartbeat_ms + w.liveness_ttl_ms, w.registered_at_ms,
               w.last_heartbeat_ms + w.liveness_ttl_ms > ff__now_ms()
          from ff_worker_registry w
         where (p_namespace is null or w.namespace = p_namespace)
           and (p_after is null or (w.namespace, w.worker_instance_id) > (v_namespace, v_instance))
         order by w.namespace, w.worker_instance_id limit p_limit;
end
$$;

comment on function ff_list_workers(text, text, int) is
$$Registered workers of one namespace, or of all, and whether they are alive. p_after: the cursor of the last row read.

Errors: invalid_input, invalid_cursor$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
