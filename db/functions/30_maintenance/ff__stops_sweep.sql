-- Whether an error says nothing about the row at hand, so that a sweep must not back the row off for it: the transaction
-- cannot go on (serialization, deadlock, read-only), a lock timeout, or the server is short of something or going down.
-- A cancelled query (statement_timeout too) never gets here: OTHERS does not catch it.
create or replace function ff__stops_sweep(p_sqlstate text) returns boolean
language plpgsql immutable
as $$
begin
    return left(p_sqlstate, 2) in ('40', '25', '53', '57', '58') or p_sqlstate = '55P03';
end
$$;
