-- A group was decided or reopened, under the locks of the flow and of its child: a runnable child is settled anew. One
-- that runs or has ended is left alone, but its row is written with nothing changed: a verb that runs at REPEATABLE READ
-- and cannot see the decision then fails to serialize, instead of waiting for what has happened. Returns the public state.
create or replace function ff__settle_child(e ff_exec) returns text
language plpgsql volatile
as $$
begin
    if e.lifecycle_phase = 'runnable' then
        return ff__requeue(e, null, e.delay_until_ms);
    end if;
    update ff_exec_core c set last_mutation_at_ms = c.last_mutation_at_ms where c.execution_id = e.execution_id;
    return e.public_state;
end
$$;
