create or replace function ff_get_budget_status(p_budget_id text)
returns table (
    budget_id text, scope_type text, scope_id text, enforcement_mode text, on_hard_limit text, on_soft_limit text,
    reset_interval_ms bigint, next_reset_at_ms bigint, last_reset_at_ms bigint, reset_epoch bigint, reset_count int,
    release_on_terminal boolean, breached boolean, breach_count int, soft_breach_count int, last_breach_at_ms bigint,
    last_breach_dim text, created_at_ms bigint, updated_at_ms bigint, dimension text, current_usage bigint,
    hard_limit bigint, soft_limit bigint
)
language plpgsql stable security definer
as $$
begin
    if p_budget_id is null then
        perform ff__invalid('p_budget_id', 'must not be null');
    end if;
    return query
        select b.budget_id, b.scope_type, b.scope_id, b.enforcement_mode, b.on_hard_limit, b.on_soft_limit,
               b.reset_interval_ms, b.next_reset_at_ms, b.last_reset_at_ms, b.reset_epoch, b.reset_count,
               b.release_on_terminal, b.breached, b.breach_count, b.soft_breach_count, b.last_breach_at_ms,
               b.last_breach_dim, b.created_at_ms, b.updated_at_ms, u.dimension, u.current_value, u.hard_limit,
               u.soft_limit
          from ff_budget b left join ff_budget_usage u on u.budget_id = b.budget_id
         where b.budget_id = p_budget_id
         order by u.dimension;
    if not found then
        perform ff__raise_no_budget(p_budget_id);
    end if;
end
$$;

comment on function ff_get_budget_status(text) is
$$All attributes of one budget: a row per dimension, by name; one row without a dimension if it has none.

Outcomes: enforcement_mode = strict | warn
Outcomes: on_hard_limit = fail | block | cancel_pending | cancel_all
Outcomes: on_soft_limit = warn | none
Nullable: next_reset_at_ms, last_reset_at_ms, last_breach_at_ms, last_breach_dim, dimension, current_usage
Nullable: hard_limit, soft_limit
Errors: invalid_input, budget_not_found$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
