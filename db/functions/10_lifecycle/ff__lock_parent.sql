-- How a parent has ended: its terminal_outcome, with its row locked; none if it has not ended; gone if it was deleted;
-- busy if another transaction holds its row. Never waits. The row of a parent that has not ended is locked for a moment
-- and released: no transaction is about to end it unseen, and its worker is not kept from renewing the lease.
create or replace function ff__lock_parent(p_parent_id uuid) returns text
language plpgsql volatile
as $$
declare
    v_outcome text;
begin
    begin
        select c.terminal_outcome into v_outcome from ff_exec_core c
         where c.execution_id = p_parent_id for update skip locked;
        if not found then
            return case when exists (select from ff_exec_core c where c.execution_id = p_parent_id) then 'busy' else 'gone' end;
        elsif v_outcome = 'none' then
            -- The subtransaction ends, and the lock with it.
            perform ff__raise('execution_not_terminal', 'the parent has not ended');
        end if;
    exception when sqlstate 'WF406' then
        return 'none';
    end;
    return v_outcome;
end
$$;
