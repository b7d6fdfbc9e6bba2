-- An execution with attached children ended other than by success; the caller holds its row. Its children, their children
-- and so on are cancelled here if they are few (100 rows of work in all) and not locked; the rest is left to maintenance,
-- and all of it if this end is part of an operation on a flow, of maintenance or of another such end: these hold locks and
-- continue with them. A snapshot that is older than the lock may not show all children: maintenance looks again.
create or replace function ff__parent_ended(p_parent_id uuid) returns void
language plpgsql volatile
as $$
begin
    insert into ff_child_work (parent_id, action) values (p_parent_id, 'check');
    if coalesce(current_setting('ff.flow', true), '') = '' and coalesce(current_setting('ff.children', true), '') = '' then
        perform ff__drain_children(100, array[p_parent_id]);
        if current_setting('transaction_isolation') <> 'read committed' then
            insert into ff_child_work (parent_id, action) values (p_parent_id, 'check');
        end if;
    end if;
end
$$;
