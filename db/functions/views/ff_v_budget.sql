-- Budgets, for dashboards and ad hoc queries, a row per dimension. Spend per execution is not shown, as the ledger is
-- large.
create or replace view ff_v_budget as
select b.budget_id,
       u.dimension,
       u.current_value as current_usage,
       u.hard_limit,
       u.soft_limit,
       b.breached,
       b.enforcement_mode,
       b.on_hard_limit,
       b.on_soft_limit,
       b.scope_type,
       b.scope_id,
       b.breach_count,
       b.soft_breach_count,
       to_timestamp(b.last_breach_at_ms / 1000::float8) as last_breach_at,
       b.last_breach_dim,
       b.reset_count,
       to_timestamp(b.last_reset_at_ms / 1000::float8) as last_reset_at,
       to_timestamp(b.next_reset_at_ms / 1000::float8) as next_reset_at,
       to_timestamp(b.created_at_ms / 1000::float8) as created_at,
       to_timestamp(b.updated_at_ms / 1000::float8) as updated_at
  from ff_budget b
  left join ff_budget_usage u on u.budget_id = b.budget_id;

comment on view ff_v_budget is
$$Budgets: limits, usage, and whether they block work. One row per dimension; a budget without dimensions has one row
with dimension NULL.
Fast: budget_id = ..$$;
comment on column ff_v_budget.budget_id is 'The name of the budget.';
comment on column ff_v_budget.dimension is 'What is counted; NULL: the budget has no dimension yet.';
comment on column ff_v_budget.current_usage is 'Usage since the last reset.';
comment on column ff_v_budget.hard_limit is 'The hard limit; NULL: no limit.';
comment on column ff_v_budget.soft_limit is 'The soft limit, which is reported when passed; NULL: no limit.';
comment on column ff_v_budget.breached is 'A hard limit was met: on_hard_limit applies.';
comment on column ff_v_budget.enforcement_mode is
    'strict rejects usage above a hard limit; warn counts and reports it.';
comment on column ff_v_budget.on_hard_limit is 'What is done with attached executions at a hard limit.';
comment on column ff_v_budget.on_soft_limit is 'Whether passing a soft limit is reported.';
comment on column ff_v_budget.scope_type is 'What the budget is for: a label set by its creator.';
comment on column ff_v_budget.scope_id is 'Which one of scope_type: a label set by its creator.';
comment on column ff_v_budget.breach_count is 'How often a hard limit was met.';
comment on column ff_v_budget.soft_breach_count is 'How often a soft limit was passed.';
comment on column ff_v_budget.last_breach_at is 'When a hard limit was last met.';
comment on column ff_v_budget.last_breach_dim is 'The dimension of the last breach.';
comment on column ff_v_budget.reset_count is 'How often it was reset.';
comment on column ff_v_budget.last_reset_at is 'When it was last reset.';
comment on column ff_v_budget.next_reset_at is 'When it is reset next; NULL: only by ff_reset_budget.';
comment on column ff_v_budget.created_at is 'When it was created.';
comment on column ff_v_budget.updated_at is 'When it was last changed.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
