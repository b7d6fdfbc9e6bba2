-- Locks: the execution. Writes only if the token must be signed with another key.
create or replace function ff_read_waitpoint_token(p_execution_id text, p_waitpoint_id uuid)
returns table (waitpoint_token text, token_kid text, state text)
language plpgsql volatile security definer rows 1
as $$
declare
    e ff_exec;
    w ff_waitpoint;
begin
    if p_waitpoint_id is null then
        perform ff__invalid('p_waitpoint_id', 'must not be null');
    end if;
    e := ff__open(ff__execution_uuid(p_execution_id));
    select x.* into w from ff_waitpoint x
     where x.waitpoint_id = p_waitpoint_id and x.execution_id = e.execution_id and x.state in ('pending', 'active');
    if found then
        waitpoint_token := ff__current_token(e, w);
        token_kid := split_part(waitpoint_token, ':', 1);
        state := w.state;
        return next;
    end if;
end
$$;

comment on function ff_read_waitpoint_token(text, uuid) is
$$Returns the token of a pending or active waitpoint, for an operator who must hand it out again. If its key is no
longer accepted, the token is signed again with the active key. No row: this execution has no such open waitpoint.

Rows: at most one
Outcomes: state = pending | active
Errors: invalid_input, invalid_execution_id, hmac_not_initialized$$;
-- grant: ff_operator, ff_admin
