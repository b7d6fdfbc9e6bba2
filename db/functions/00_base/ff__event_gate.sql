-- Opens the outbox for one event that is not an execution's: the current generation, or NULL when its type is muted.
-- Rings if the family notifies at commit. On a snapshot from before a rebase (REPEATABLE READ and stricter) it fails with
-- 40001: an event of the old generation would come too late for readers.
create or replace function ff__event_gate(p_family text, p_event_type text) returns int
language plpgsql volatile
as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform from ff_event_generation g where g.id for share;
    end if;
    return (select g.gen
              from ff_event_generation g
             where p_family || '/' || p_event_type <> all (g.muted) and (p_family <> all (g.notified) or ff__ring(p_family)));
end
$$;
