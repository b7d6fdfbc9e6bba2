create or replace function ff_read_budget_usage_and_limits(p_budget_id text)
returns table (dimension text, current_usage bigint, hard_limit bigint, soft_limit bigint, hard_exhausted boolean)
language plpgsql stable security definer
as $$
begin
    if p_budget_id is null then
        perform ff__invalid('p_budget_id', 'must not be null');
    end if;
    return query
        select u.dimension, u.current_value, u.hard_limit, u.soft_limit,
               coalesce(u.current_value >= u.hard_limit, false)
          from ff_budget_usage u where u.budget_id = p_budget_id order by u.dimension;
end
$$;

comment on function ff_read_budget_usage_and_limits(text) is
$$Usage and limits of a budget, a row per dimension, by name. hard_exhausted: usage has reached the hard limit. No
row: no such budget, or a budget without dimensions.

Nullable: hard_limit, soft_limit
Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
