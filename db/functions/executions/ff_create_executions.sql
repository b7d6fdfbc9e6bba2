-- Locks: the flow, the idempotency keys in their order, so that two overlapping batches cannot deadlock. All or
-- nothing. Replay: by key, 'duplicate' with the existing execution.
create or replace function ff_create_executions(
    p_lane_id text,
    p_payloads bytea[],
    p_idempotency_keys text[] default null,
    p_priorities int[] default null,
    p_execution_kind text default '',
    p_policy jsonb default '{}',
    p_tags jsonb default '{}',
    p_required_capabilities text[] default '{}',
    p_delay_until_ms bigint default null,
    p_delay_ms bigint default null,
    p_deadline_at_ms bigint default null,
    p_namespace text default 'default',
    p_flow_id uuid default null,
    p_payload_encoding text default null,
    p_creator text default ''
) returns table (ordinal int, outcome text, execution_id text, public_state text)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_read bigint := v_now;
    v_count int := cardinality(p_payloads);
    v_seed text;
    v_byte int := floor(random() * 256);
    v_armed boolean;
    v_ids uuid[];
    v_owners uuid[];
    v_new uuid[];
    s ff_submission;
    f ff_flow_core;
begin
    if p_payloads is null then
        perform ff__invalid('p_payloads', 'must not be null');
    elsif array_ndims(p_payloads) > 1 then
        perform ff__invalid('p_payloads', 'must have one dimension');
    elsif array_ndims(p_idempotency_keys) > 1 then
        perform ff__invalid('p_idempotency_keys', 'must have one dimension');
    elsif array_ndims(p_priorities) > 1 then
        perform ff__invalid('p_priorities', 'must have one dimension');
    elsif v_count > 10000 then
        perform ff__invalid('p_payloads', 'must have at most 10000 items', jsonb_build_object('index', 10001));
    elsif cardinality(p_idempotency_keys) <> v_count then
        perform ff__invalid('p_idempotency_keys', 'must have as many items as p_payloads',
                            jsonb_build_object('index', least(cardinality(p_idempotency_keys), v_count) + 1));
    elsif cardinality(p_priorities) <> v_count then
        perform ff__invalid('p_priorities', 'must have as many items as p_payloads',
                            jsonb_build_object('index', least(cardinality(p_priorities), v_count) + 1));
    end if;
    if p_idempotency_keys is not null then
        perform ff__check_idempotency_keys(p_idempotency_keys);
    end if;
    perform ff__check_size('max_execution_bytes', 'payload', x.payload, jsonb_build_object('index', x.n))
       from unnest(p_payloads) with ordinality x(payload, n) where octet_length(x.payload) > 1024;
    perform from ff_lane_registry l where l.lane_id = p_lane_id;
    if not found then
        perform ff__check_lane_id(p_lane_id);
    end if;
    s := ff__check_submission(p_lane_id, p_execution_kind, null, p_policy, p_tags, p_required_capabilities,
                              p_delay_until_ms, p_delay_ms, p_deadline_at_ms, p_namespace, p_payload_encoding,
                              p_creator, v_now);
    if p_flow_id is not null then
        f := ff__lock_flow(p_flow_id);
        v_now := ff__now_ms();
    end if;
    v_seed := ff__mint_id(v_now, coalesce(ff__partition(p_flow_id), 0))::text;
    v_ids := array(select ff__batch_id(v_seed, x.n, coalesce(ff__partition(p_flow_id), (v_byte + x.n) & 255))
                     from generate_series(0, v_count - 1) x(n));
    v_owners := v_ids;
    v_new := v_ids;
    if p_idempotency_keys is not null and s.dedup_window_ms > 0 then
        v_owners := ff__claim_idempotency_keys(
            p_namespace, p_idempotency_keys, s.dedup_window_ms, v_ids,
            array(select ff__request_hash(p_lane_id, p_execution_kind, x.payload, p_payload_encoding, p_flow_id)
                    from unnest(p_payloads) with ordinality x(payload, n) order by x.n));
        v_now := ff__now_ms();
    end if;
    if v_owners && v_ids then
        if v_now > v_read then
            -- The call has waited for a lock: relative times count from the end of the wait.
            s := ff__check_submission(p_lane_id, p_execution_kind, null, p_policy, p_tags, p_required_capabilities,
                                      p_delay_until_ms, p_delay_ms, p_deadline_at_ms, p_namespace, p_payload_encoding,
                                      p_creator, v_now);
        end if;
        v_armed := ff__open_lane(p_lane_id, v_now);
        if f.public_flow_state = 'cancelled' then
            perform ff__raise_flow_over(f);
        end if;
        s.quota_policy_id := coalesce(s.quota_policy_id, f.quota_policy_id);
        s.budget_ids := coalesce(s.budget_ids, f.budget_ids);
        s.limited := num_nonnulls(s.quota_policy_id, s.budget_ids) > 0;
        s.queue_id := ff__queue(p_lane_id, p_namespace, s.limited, s.caps_key, s.required_capabilities);
        if v_owners <> v_ids then
            select array_agg(x.id order by x.n), array_agg(x.payload order by x.n), array_agg(x.priority order by x.n)
              into v_new, p_payloads, p_priorities
              from unnest(v_ids, v_owners, p_payloads, p_priorities) with ordinality x(id, owner, payload, priority, n)
             where x.id = x.owner;
        end if;
        perform ff__insert_executions(
            v_new, p_payloads, s, v_now,
            array(select greatest(0, least(coalesce(x.priority, s.priority), 9000))
                    from unnest(p_priorities) with ordinality x(priority, n) order by x.n),
            p_flow_id, coalesce(f.public_flow_state = 'building', false));
        if v_armed and s.delay_until_ms is null then
            perform ff__notify_lane(p_lane_id);
        end if;
        if p_flow_id is not null then
            perform ff__count_new_members(p_flow_id, cardinality(v_new), v_now);
        end if;
    end if;
    if p_flow_id is not null then
        perform ff__close_flow(p_flow_id);
    end if;
    return query
        select x.n::int, case when x.id = x.owner then 'created' else 'duplicate' end,
               ff__wire_id(ff__partition(x.owner), x.owner),
               case when x.id <> x.owner then (select c.public_state from ff_exec_core c where c.execution_id = x.owner)
                    when s.delay_until_ms is null then 'waiting' else 'delayed' end
          from unnest(v_ids, v_owners) with ordinality x(id, owner, n) order by x.n;
end
$$;

comment on function ff_create_executions(text, bytea[], text[], int[], text, jsonb, jsonb, text[], bigint, bigint,
                                         bigint, text, uuid, text, text) is
$$Submits up to 10 000 executions to a lane in one call, all or none. All arguments but payload, key and priority are
common to all. Returns rows in the order of p_payloads. A key repeated inside the call returns created, then duplicate.

Outcomes: outcome = created | duplicate
Nullable: public_state
Errors: invalid_input, payload_too_large, invalid_lane_id, invalid_policy, invalid_capabilities, invalid_tag_key
Errors: quota_policy_not_found, budget_not_found, flow_not_found, idempotency_conflict, lane_not_accepting
Errors: flow_already_terminal$$;
-- grant: ff_producer, ff_operator, ff_admin

-- Checks the idempotency keys of a batch. Errors: invalid_input (DETAIL.index, from 1).
create or replace function ff__check_idempotency_keys(p_keys text[]) returns void
language plpgsql stable
as $$
declare
    v_at int;
begin
    select min(x.n) into v_at from unnest(p_keys) with ordinality x(key, n) where octet_length(x.key) > 512;
    if v_at is not null then
        perform ff__invalid('p_idempotency_keys', 'must hold keys of at most 512 bytes',
                            jsonb_build_object('index', v_at));
    end if;
end
$$;

-- ff__claim_idempotency_key for a batch: returns the owner of each item, its own id if the item is new. NULL and ''
-- mean no key. Locks the keys in their order; the caller has checked them (ff__check_idempotency_keys).
-- Errors: idempotency_conflict (DETAIL.index, from 1).
create or replace function ff__claim_idempotency_keys(
    p_namespace text, p_keys text[], p_window_ms bigint, p_ids uuid[], p_hashes bytea[]
) returns uuid[]
language plpgsql volatile
as $$
declare
    v_now bigint;
    v_at int;
    v_owner uuid;
    v_owners uuid[] := p_ids;
    f record;
    k ff_idempotency;
begin
    v_now := ff__now_ms();
    insert into ff_idempotency (namespace, idempotency_key, partition_key, execution_id, expires_at_ms, request_hash)
    select p_namespace, y.key, ff__partition(p_ids[y.n]), p_ids[y.n], ff__time_after(v_now, p_window_ms), p_hashes[y.n]
      from (select x.key collate "C" as key, min(x.n) as n from unnest(p_keys) with ordinality x(key, n)
             where x.key <> '' group by 1) y
     order by y.key
    on conflict do nothing;
    for f in
        select y.key, y.ns[1] as n, y.ns
          from (select x.key collate "C" as key, array_agg(x.n::int order by x.n) as ns
                  from unnest(p_keys) with ordinality x(key, n) where x.key <> '' group by 1) y
         order by y.key
    loop
        select i.* into k from ff_idempotency i
         where i.namespace = p_namespace and i.idempotency_key = f.key for update;
        if found and k.execution_id = p_ids[f.n] then
            v_owner := null;
        else
            -- Owned by another execution, expired, or deleted since the insert: ff__claim_idempotency_key handles each.
            v_owner := ff__claim_idempotency_key(p_namespace, f.key, p_window_ms, p_ids[f.n], p_hashes[f.n]);
        end if;
        foreach v_at in array f.ns loop
            if p_hashes[v_at] <> p_hashes[f.n] then
                perform ff__raise('idempotency_conflict', 'the batch uses one idempotency key for different requests',
                                  jsonb_build_object('index', v_at, 'namespace', p_namespace));
            end if;
            v_owners[v_at] := coalesce(v_owner, p_ids[f.n]);
        end loop;
    end loop;
    return v_owners;
end
$$;
