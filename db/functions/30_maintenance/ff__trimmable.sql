-- Of ended executions that the caller has locked, those that can be deleted without waiting, with the locks for that:
-- no open transaction holds their streams or their rows in ff_child_work. Those that have
-- yet to release spend are left out: spend is recorded under a lock on the execution, so none can be added now.
create or replace function ff__trimmable(p_ids uuid[]) returns uuid[]
language plpgsql volatile
as $$
declare
    v_work bigint[];
begin
    p_ids := ff__free_streams(p_ids);
    v_work := array(select w.work_id from ff_child_work w where w.parent_id = any (p_ids) for update skip locked);
    return array(
        select x.id from unnest(p_ids) x(id)
         where not exists (select from ff_child_work w where w.parent_id = x.id and w.work_id <> all (v_work))
           and not ff__owes_spend(x.id));
end
$$;
