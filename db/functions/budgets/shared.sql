-- The limits of one dimension: each 0 or more, the soft one not above the hard one; 0 and NULL mean none. p_plural: 's'
-- where the arguments are lists. Errors: invalid_input.
create or replace function ff__check_limits(p_plural text, p_dimension text, p_hard bigint, p_soft bigint) returns void
language plpgsql stable
as $$
begin
    if p_dimension is null or octet_length(p_dimension) not between 1 and 128 then
        perform ff__invalid('p_dimension' || p_plural, 'must have 1 to 128 bytes',
                            jsonb_build_object('dimension', left(p_dimension, 128)));
    elsif p_hard < 0 or p_soft < 0 then
        perform ff__invalid(case when p_hard < 0 then 'p_hard_limit' else 'p_soft_limit' end || p_plural,
                            'must be 0 or more', jsonb_build_object('dimension', p_dimension));
    elsif p_hard > 0 and p_soft > p_hard then
        perform ff__invalid('p_soft_limit' || p_plural, 'must not be above the hard limit',
                            jsonb_build_object('dimension', p_dimension));
    end if;
end
$$;

-- Locks a budget (waits for it). Errors: invalid_input (NULL), budget_not_found.
create or replace function ff__lock_budget(p_budget_id text) returns ff_budget
language plpgsql volatile
as $$
declare
    b ff_budget;
begin
    if p_budget_id is null then
        perform ff__invalid('p_budget_id', 'must not be null');
    end if;
    select x.* into b from ff_budget x where x.budget_id = p_budget_id for update;
    if b.budget_id is null then
        perform ff__raise_no_budget(p_budget_id);
    end if;
    return b;
end
$$;

-- Raises budget_not_found.
create or replace function ff__raise_no_budget(p_budget_id text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('budget_not_found', format('no budget %s', left(p_budget_id, 200)),
                      jsonb_build_object('budget_id', left(p_budget_id, 200)));
end
$$;

-- Attaches a budget to executions, or detaches it: the only function that changes it after their creation. The caller
-- has locked them.
create or replace function ff__set_budgets(
    p_execution_ids uuid[], p_budget_id text, p_attach boolean, p_now_ms bigint
) returns void
language plpgsql volatile
as $$
begin
    update ff_execution c
       set budget_ids = case when p_attach then array_append(c.budget_ids, p_budget_id)
                             else nullif(array_remove(c.budget_ids, p_budget_id), '{}') end,
           limited = p_attach or c.quota_policy_id is not null
                     or cardinality(array_remove(c.budget_ids, p_budget_id)) > 0
                     or exists (select from ff_quota_reservation r where r.execution_id = c.execution_id),
           last_mutation_at_ms = p_now_ms
     where c.execution_id = any (p_execution_ids);
    perform ff__change_queue(p_execution_ids);
end
$$;

-- The shared body of usage reports: adds p_deltas to a budget, or rejects all of them. p_execution_id: also recorded in
-- the ledger under this execution; p_unbound: which does not exist. Locks the budget (waits for it); the other rows of
-- the budget are written under that lock alone. The amounts are added first and then checked: most fit, and a rejection
-- subtracts them again before commit. A rejection is an outcome, not an error, so that the breach can be written. At
-- REPEATABLE READ a transaction that cannot see an earlier report, applied or rejected, gets a serialization failure. A
-- new dimension updates the budget's row, for a reset that cannot see that dimension. Replay: an applied report with a
-- key is remembered for a day. Errors: invalid_input, budget_not_found, dedup_key_conflict, budget_overflow.
create or replace function ff__spend(
    p_budget_id text,
    p_deltas jsonb,
    p_dedup_key text,
    p_execution_id uuid default null,
    p_unbound boolean default false,
    out outcome text,
    out applied boolean,
    out dimension text,
    out current_usage bigint,
    out limit_value bigint,
    out original_outcome text
)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
    v_key text := nullif(p_dedup_key, '');
    v_names text[];
    v_amounts bigint[];
    v_bad text;
    v_hash bytea;
    v_now bigint;
    v_mode text;
    v_action text;
    v_warn text;
    v_epoch bigint;
    v_count int;
    v_new boolean;
    v_full text;
    v_hard text;
    v_soft text;
    r ff_budget_usage_dedup;
begin
    if p_budget_id is null then
        perform ff__invalid('p_budget_id', 'must not be null');
    elsif octet_length(v_key) > 512 then
        perform ff__invalid(case when p_execution_id is null then 'p_dedup_key' else 'p_idempotency_key' end,
                            'must have at most 512 bytes', jsonb_build_object('bytes', octet_length(v_key)));
    elsif p_deltas is null or jsonb_typeof(p_deltas) <> 'object' then
        perform ff__invalid('p_deltas', 'must be an object of whole numbers by dimension');
    end if;
    -- In jsonb key order, so that the same amounts have the same hash.
    select array_agg(d.key), array_agg(n.amount),
           min(d.key) filter (where n.amount is null or octet_length(d.key) not between 1 and 128)
      into v_names, v_amounts, v_bad
      from jsonb_each(p_deltas) d
     cross join lateral (
           select case when jsonb_typeof(d.value) = 'number'
                       then case when d.value::numeric between 0 and 9007199254740992
                                      and d.value::numeric = trunc(d.value::numeric)
                                 then d.value::bigint end end) n(amount);
    applied := true;
    if v_bad is not null then
        perform ff__invalid('p_deltas', 'must hold whole numbers from 0 to 2^53, under names of 1 to 128 bytes',
                            jsonb_build_object('dimension', left(v_bad, 128)));
    elsif v_names is null then
        outcome := 'ok';
        return;
    end if;

    select b.enforcement_mode, b.on_hard_limit, b.on_soft_limit, b.reset_epoch into v_mode, v_action, v_warn, v_epoch
      from ff_budget b where b.budget_id = p_budget_id for update;
    if v_mode is null then
        perform ff__raise_no_budget(p_budget_id);
    end if;
    v_now := ff__now_ms();
    if v_key is not null then
        v_hash := sha256(convert_to(v_names::text || v_amounts::text, 'UTF8'));
        select x.* into r from ff_budget_usage_dedup x
         where x.budget_id = p_budget_id and x.dedup_key = v_key
           -- CASE, so that no plan reads all unexpired keys.
           and case when x.dedup_key = v_key then x.expires_at_ms > v_now end;
        if r.deltas_hash = v_hash then
            outcome := 'already_applied';
            original_outcome := r.outcome;
            dimension := r.dimension;
            current_usage := r.current_usage;
            limit_value := r.limit_value;
            return;
        elsif r.deltas_hash is not null then
            perform ff__raise('dedup_key_conflict', 'this key was used for another report',
                              jsonb_build_object('budget_id', p_budget_id, 'dedup_key', v_key));
        end if;
    end if;

    with added as (
        -- An overflowing dimension is set to -1, and the call is rolled back.
        update ff_budget_usage u
           set current_value = case when u.current_value <= 9223372036854775807 - x.amount
                                    then u.current_value + x.amount else -1 end
          from unnest(v_names, v_amounts) x(name, amount)
         where u.budget_id = p_budget_id and u.dimension = x.name
        returning u.dimension, u.current_value, u.hard_limit, u.soft_limit, x.amount > 0 as grown)
    select count(*), min(a.dimension) filter (where a.current_value < 0),
           min(a.dimension) filter (where a.grown and a.current_value > a.hard_limit),
           min(a.dimension) filter (where a.grown and a.current_value > a.soft_limit and v_warn = 'warn')
      into v_count, v_full, v_hard, v_soft
      from added a;
    if v_full is not null then
        perform ff__raise('budget_overflow', format('%s of budget %s cannot count that far', v_full, p_budget_id),
                          jsonb_build_object('budget_id', p_budget_id, 'dimension', v_full));
    end if;

    if v_hard is not null and v_mode = 'strict' then
        outcome := 'hard_breach';
        applied := false;
        dimension := v_hard;
        update ff_budget_usage u set current_value = u.current_value - x.amount
          from unnest(v_names, v_amounts) x(name, amount)
         where u.budget_id = p_budget_id and u.dimension = x.name;
        select u.current_value, u.hard_limit into current_usage, limit_value from ff_budget_usage u
         where u.budget_id = p_budget_id and u.dimension = v_hard;
        update ff_budget b
           set breach_count = least(b.breach_count, 2147483646) + 1, last_breach_at_ms = v_now,
               last_breach_dim = v_hard, breached = b.breached or v_action <> 'fail', updated_at_ms = v_now
         where b.budget_id = p_budget_id;
        if v_action in ('cancel_pending', 'cancel_all') then
            insert into ff_budget_breach (budget_id, breached_at_ms, action) values (p_budget_id, v_now, v_action)
            on conflict do nothing;
        end if;
        return;
    end if;

    outcome := case when v_hard is not null then 'hard_breach' when v_soft is not null then 'soft_breach' else 'ok' end;
    v_new := v_count < cardinality(v_names);
    if v_new then
        insert into ff_budget_usage as u (budget_id, dimension, current_value)
        select p_budget_id, x.name, x.amount
          from unnest(v_names, v_amounts) x(name, amount)
         where not exists (select from ff_budget_usage o where o.budget_id = p_budget_id and o.dimension = x.name)
        on conflict (budget_id, dimension) do update set current_value = u.current_value + excluded.current_value;
    end if;
    if v_new or outcome <> 'ok' then
        select u.dimension, u.current_value, case when v_hard is null then u.soft_limit else u.hard_limit end
          into dimension, current_usage, limit_value
          from ff_budget_usage u where u.budget_id = p_budget_id and u.dimension = coalesce(v_hard, v_soft);
        update ff_budget b
           set breach_count = case when v_hard is null then b.breach_count
                                   else least(b.breach_count, 2147483646) + 1 end,
               soft_breach_count = case when v_soft is null then b.soft_breach_count
                                        else least(b.soft_breach_count, 2147483646) + 1 end,
               last_breach_at_ms = case when v_hard is null then b.last_breach_at_ms else v_now end,
               last_breach_dim = coalesce(v_hard, b.last_breach_dim), updated_at_ms = v_now
         where b.budget_id = p_budget_id;
    end if;
    if p_execution_id is not null then
        insert into ff_budget_usage_by_exec as l (budget_id, execution_id, dimension, reset_epoch, delta_total, unbound)
        select p_budget_id, p_execution_id, x.name, v_epoch, x.amount, p_unbound
          from unnest(v_names, v_amounts) x(name, amount) where x.amount > 0
        on conflict (budget_id, execution_id, dimension, reset_epoch)
        do update set delta_total = l.delta_total + excluded.delta_total, unbound = l.unbound and excluded.unbound;
    end if;
    if v_key is not null then
        -- A conflicting key has expired.
        insert into ff_budget_usage_dedup as x (
            budget_id, dedup_key, current_usage, limit_value, expires_at_ms, deltas_hash, outcome, dimension)
        values (p_budget_id, v_key, ff__spend.current_usage, ff__spend.limit_value, v_now + 86400000, v_hash,
                ff__spend.outcome, ff__spend.dimension)
        on conflict (budget_id, dedup_key) do update
           set current_usage = excluded.current_usage, limit_value = excluded.limit_value,
               expires_at_ms = excluded.expires_at_ms, deltas_hash = excluded.deltas_hash, outcome = excluded.outcome,
               dimension = excluded.dimension;
    end if;
end
$$;
