-- Of executions that the caller has locked, those that can be deleted as parents without waiting, with the locks for that:
-- no open transaction makes a child of them live, and none holds their rows in ff_child_work.
create or replace function ff__free_parents(p_ids uuid[]) returns uuid[]
language plpgsql volatile
as $$
declare
    v_work bigint[];
begin
    p_ids := array(select i.execution_id from unnest(p_ids) x(id) join ff_exec_input i on i.execution_id = x.id
                      for update of i skip locked);
    v_work := array(select w.work_id from ff_child_work w where w.parent_id = any (p_ids) for update skip locked);
    return array(select x.id from unnest(p_ids) x(id)
                  where not exists (select from ff_child_work w where w.parent_id = x.id and w.work_id <> all (v_work)));
end
$$;
