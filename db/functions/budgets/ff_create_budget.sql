-- Locks: the id (waits for a concurrent call with the same one). Repeatable with the same definition; dimensions
-- without limits are ignored in the comparison.
create or replace function ff_create_budget(
    p_budget_id text,
    p_dimensions text[],
    p_hard_limits bigint[],
    p_soft_limits bigint[],
    p_scope_type text default '',
    p_scope_id text default '',
    p_enforcement_mode text default 'strict',
    p_on_hard_limit text default 'fail',
    p_on_soft_limit text default 'warn',
    p_reset_interval_ms bigint default 0,
    p_release_on_terminal boolean default false,
    out outcome text,
    out budget_id text,
    out next_reset_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    b ff_budget;
begin
    if p_budget_id is null or length(p_budget_id) not between 1 and 200 or p_budget_id ~ E'[\\x01-\\x1f\\x7f]' then
        perform ff__invalid('p_budget_id', 'must have 1 to 200 characters, none a control character');
    elsif p_dimensions is null or array_ndims(p_dimensions) > 1 then
        perform ff__invalid('p_dimensions', 'must be a list');
    elsif p_hard_limits is null or array_ndims(p_hard_limits) > 1
          or cardinality(p_hard_limits) <> cardinality(p_dimensions) then
        perform ff__invalid('p_hard_limits', 'must be a list with one entry per dimension');
    elsif p_soft_limits is null or array_ndims(p_soft_limits) > 1
          or cardinality(p_soft_limits) <> cardinality(p_dimensions) then
        perform ff__invalid('p_soft_limits', 'must be a list with one entry per dimension');
    end if;
    perform ff__check_limits('s', x.dimension, x.hard_limit, x.soft_limit)
       from unnest(p_dimensions, p_hard_limits, p_soft_limits) x(dimension, hard_limit, soft_limit);
    if cardinality(p_dimensions)
       <> (select count(distinct x.dimension collate "C") from unnest(p_dimensions) x(dimension)) then
        perform ff__invalid('p_dimensions', 'must be distinct');
    end if;
    perform ff__check_text('p_scope_type', p_scope_type, 0, 256);
    perform ff__check_text('p_scope_id', p_scope_id, 0, 256);
    if p_enforcement_mode is null or p_enforcement_mode not in ('strict', 'warn') then
        perform ff__invalid('p_enforcement_mode', 'must be strict or warn');
    elsif p_on_hard_limit is null or p_on_hard_limit not in ('fail', 'block', 'cancel_pending', 'cancel_all') then
        perform ff__invalid('p_on_hard_limit', 'must be fail, block, cancel_pending or cancel_all');
    elsif p_on_soft_limit is null or p_on_soft_limit not in ('warn', 'none') then
        perform ff__invalid('p_on_soft_limit', 'must be warn or none');
    elsif p_reset_interval_ms is null then
        perform ff__invalid('p_reset_interval_ms', 'must not be null');
    elsif p_release_on_terminal is null then
        perform ff__invalid('p_release_on_terminal', 'must not be null');
    end if;
    perform ff__check_time('p_reset_interval_ms', p_reset_interval_ms, p_from_ms => v_now);

    insert into ff_budget as x (
        budget_id, reset_interval_ms, next_reset_at_ms, created_at_ms, updated_at_ms, release_on_terminal,
        enforcement_mode, on_hard_limit, on_soft_limit, scope_type, scope_id)
    values (p_budget_id, p_reset_interval_ms, v_now + nullif(p_reset_interval_ms, 0), v_now, v_now,
            p_release_on_terminal, p_enforcement_mode, p_on_hard_limit, p_on_soft_limit, p_scope_type, p_scope_id)
    on conflict do nothing
    returning x.* into b;
    outcome := 'created';
    if b.budget_id is not null then
        insert into ff_budget_usage (budget_id, dimension, hard_limit, soft_limit)
        select p_budget_id, x.dimension, nullif(x.hard_limit, 0), nullif(x.soft_limit, 0)
          from unnest(p_dimensions, p_hard_limits, p_soft_limits) x(dimension, hard_limit, soft_limit);
    else
        outcome := 'already_satisfied';
        select x.* into b from ff_budget x where x.budget_id = p_budget_id;
        if (b.scope_type, b.scope_id, b.enforcement_mode, b.on_hard_limit, b.on_soft_limit, b.reset_interval_ms,
            b.release_on_terminal)
           is distinct from (p_scope_type, p_scope_id, p_enforcement_mode, p_on_hard_limit, p_on_soft_limit,
                             p_reset_interval_ms, p_release_on_terminal)
           or exists (
               select from unnest(p_dimensions, p_hard_limits, p_soft_limits) x(dimension, hard_limit, soft_limit)
                 full join (select u.* from ff_budget_usage u where u.budget_id = p_budget_id) u
                   on u.dimension = x.dimension
                where u.hard_limit is distinct from nullif(x.hard_limit, 0)
                   or u.soft_limit is distinct from nullif(x.soft_limit, 0))
        then
            perform ff__raise('budget_conflict', format('budget %s is defined otherwise', p_budget_id),
                              jsonb_build_object('budget_id', p_budget_id));
        end if;
    end if;
    budget_id := b.budget_id;
    next_reset_at_ms := b.next_reset_at_ms;
end
$$;

comment on function ff_create_budget(text, text[], bigint[], bigint[], text, text, text, text, text, bigint, boolean) is
$$Creates a budget: limits on reported usage by dimension (tokens, cents, seconds), 0 or NULL for none.
p_enforcement_mode: strict rejects usage that would pass a hard limit, warn counts and reports it. p_on_hard_limit: what
a rejection does in addition, in strict mode: fail does nothing, block makes attached executions unclaimable until the
budget is reset or its limits are raised, cancel_pending and cancel_all also cancel the attached executions, without or
with the running ones. p_on_soft_limit none: soft limits are not reported. p_reset_interval_ms > 0: the interval after
which usage is reset to 0. p_release_on_terminal: what an execution spent by ff_record_spend is released when it has
ended. p_scope_type and p_scope_id are labels.

Outcomes: outcome = created | already_satisfied
Nullable: next_reset_at_ms
Errors: invalid_input, budget_conflict$$;
-- grant: ff_operator, ff_admin
