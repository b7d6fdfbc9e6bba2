-- Rules of budgets that must hold at every commit; each branch returns the rows that break one.
create or replace function ff__invariants_budgets() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select 'budget_usage', u.budget_id || '/' || u.dimension, format('%s used', u.current_value)
      from ff_budget_usage u
     where u.current_value < 0 or u.hard_limit <= 0 or u.soft_limit <= 0 or u.soft_limit > u.hard_limit
        or not exists (select from ff_budget b where b.budget_id = u.budget_id)
    union all
    select 'budget_limit', u.budget_id || '/' || u.dimension, format('%s of %s used', u.current_value, u.hard_limit)
      from ff_budget_usage u join ff_budget b on b.budget_id = u.budget_id
     where b.enforcement_mode = 'strict' and u.current_value > u.hard_limit and not u.lowered
    union all
    select 'budget_ledger', l.budget_id || '/' || l.dimension, format('%s spent, %s used', l.spent, u.current_value)
      from (select x.budget_id, x.dimension, sum(x.delta_total) as spent
              from ff_budget_usage_by_exec x
              join ff_budget b on b.budget_id = x.budget_id and b.reset_epoch = x.reset_epoch
             group by x.budget_id, x.dimension) l
      left join ff_budget_usage u on u.budget_id = l.budget_id and u.dimension = l.dimension
     where l.spent > coalesce(u.current_value, 0)
    union all
    select 'budget_ledger_row', l.budget_id || '/' || l.dimension,
           format('%s in epoch %s', l.delta_total, l.reset_epoch)
      from ff_budget_usage_by_exec l left join ff_budget b on b.budget_id = l.budget_id
     where l.delta_total <= 0 or l.reset_epoch > coalesce(b.reset_epoch, -1)
    union all
    select 'budget_ledger_mark', ff__wire_id(c.partition_key, c.execution_id),
           format('has spent of %s and does not know', l.budget_id)
      from ff_budget_usage_by_exec l
      join ff_budget b on b.budget_id = l.budget_id and b.release_on_terminal
      join ff_execution c on c.execution_id = l.execution_id
     where not c.spends and not l.unbound
    union all
    select 'budget_breach', x.budget_id, format('is to %s', x.action)
      from ff_budget_breach x left join ff_budget b on b.budget_id = x.budget_id
     where not coalesce(b.breached and b.on_hard_limit = x.action, false)
    union all
    select 'budget_breached', b.budget_id, format('%s, %s', b.enforcement_mode, b.on_hard_limit)
      from ff_budget b where b.breached and (b.enforcement_mode <> 'strict' or b.on_hard_limit = 'fail')
    union all
    select 'budget_dedup', d.budget_id, 'keys of a budget that is not there'
      from ff_budget_usage_dedup d where not exists (select from ff_budget b where b.budget_id = d.budget_id)
    union all
    select 'budget_attached', t.subject, format('%s', t.budget_ids)
      from (select ff__wire_id(c.partition_key, c.execution_id) as subject, c.budget_ids from ff_execution c
             where c.budget_ids is not null
            union all
            select f.flow_id::text, f.budget_ids from ff_flow_core f where f.budget_ids is not null) t
     where cardinality(t.budget_ids) not between 1 and 16
        or (select count(distinct b.budget_id) from ff_budget b where b.budget_id = any (t.budget_ids))
           <> cardinality(t.budget_ids)
    union all
    select 'budget_parked', ff__wire_id(c.partition_key, c.execution_id), 'waits for a budget and has none'
      from ff_execution c
     where c.state in ('budget', 'budget_retry', 'budget_replay', 'budget_resume') and c.budget_ids is null;
end
$$;
