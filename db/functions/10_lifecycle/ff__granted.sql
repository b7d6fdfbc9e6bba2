-- Whether somebody holds a live grant on an execution. Asked again after the row is locked: a grant changes no column of
-- it, so the lock alone does not show one that was given since the claim began to look.
create or replace function ff__granted(e ff_exec) returns boolean
language plpgsql volatile
as $$
begin
    return exists (select from ff_claim_grant g where g.execution_id = e.execution_id and g.expires_at_ms > e.now_ms);
end
$$;
