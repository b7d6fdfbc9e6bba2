create or replace function ff_list_pending_waitpoints(
    p_execution_id text, p_after uuid default null, p_limit int default 100
) returns table (
    waitpoint_id uuid, waitpoint_key text, state text, required_signal_names text[], created_at_ms bigint,
    activated_at_ms bigint, expires_at_ms bigint, execution_id text, suspension_id uuid, token_kid text,
    token_fingerprint text, signal_count int
)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    perform ff__check_limit(p_limit);
    if not exists (select from ff_execution c where c.execution_id = v_id) then
        perform ff__raise_not_found(p_execution_id);
    end if;
    return query
        select w.waitpoint_id, w.waitpoint_key, w.state, w.required_signal_names, w.created_at_ms, w.activated_at_ms,
               w.expires_at_ms, ff__wire_id(ff__partition(v_id), v_id), w.suspension_id, w.token_kid,
               w.token_fingerprint, w.signal_count
          from ff_waitpoint w
         where w.execution_id = v_id and w.state in ('pending', 'active')
           and (p_after is null or w.waitpoint_id > p_after)
         order by w.waitpoint_id limit p_limit;
end
$$;

comment on function ff_list_pending_waitpoints(text, uuid, int) is
$$Open waitpoints of an execution, pending and active, in id order. p_after: the last one read. Does not return tokens:
an operator reads a token with ff_read_waitpoint_token.

Outcomes: state = pending | active
Nullable: activated_at_ms, expires_at_ms, suspension_id
Errors: invalid_input, invalid_execution_id, execution_not_found$$;
-- grant: ff_operator, ff_admin
