-- Whether something is still kept of an execution that had this id and was deleted: an event, a child, or a live
-- idempotency key.
-- The key that is being used for the new execution does not count.
create or replace function ff__id_kept(p_execution_id uuid, p_namespace text default null, p_idempotency_key text default null)
returns boolean
language plpgsql volatile
as $$
begin
    return exists (select from ff__event_rows(p_execution_id))
        or exists (select from ff_child k where k.parent_id = p_execution_id)
        or exists (select from ff_idempotency i
                    where i.execution_id = p_execution_id and i.expires_at_ms > ff__now_ms()
                      and (i.namespace, i.idempotency_key) is distinct from (p_namespace, p_idempotency_key));
end
$$;
