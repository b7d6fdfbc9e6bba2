-- Locks: the flow, the idempotency keys, in their order, so that two overlapping batches cannot deadlock. All or nothing. Replay:
-- by key, 'duplicate' with what exists.
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
    v_default int;
    v_armed boolean;
    v_ids uuid[];
    v_owners uuid[];
    s ff_submission;
    f ff_flow_core;
    r record;
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
    v_default := s.priority;
    -- In their order: so they are handed out, and every index is written at its end.
    v_ids := array(select x.id from (select ff__mint_id(v_now, ff__partition(p_flow_id)) as id
                                       from generate_series(1, v_count)) x order by x.id);
    v_owners := v_ids;
    if p_idempotency_keys is not null and s.dedup_window_ms > 0 then
        v_owners := ff__claim_idempotency_keys(
            p_namespace, p_idempotency_keys, s.dedup_window_ms, v_ids,
            array(select ff__request_hash(p_lane_id, p_execution_kind, x.payload, p_payload_encoding, p_flow_id)
                    from unnest(p_payloads) with ordinality x(payload, n) order by x.n));
        v_now := ff__now_ms();
    end if;
    if v_owners && v_ids then
        if v_now > v_read then
            -- Times that count from now count from when the waiting was over.
            s := ff__check_submission(p_lane_id, p_execution_kind, null, p_policy, p_tags, p_required_capabilities,
                                      p_delay_until_ms, p_delay_ms, p_deadline_at_ms, p_namespace, p_payload_encoding,
                                      p_creator, v_now);
        end if;
        v_armed := ff__open_lane(p_lane_id, v_now);
        if f.public_flow_state = 'cancelled' then
            perform ff__flow_over(f);
        end if;
        s.quota_policy_id := coalesce(s.quota_policy_id, f.quota_policy_id);
        s.budget_ids := coalesce(s.budget_ids, f.budget_ids);
        s.limited := num_nonnulls(s.quota_policy_id, s.budget_ids) > 0;
        s.queue_id := ff__queue(p_lane_id, p_namespace, s.limited, s.caps_key, s.required_capabilities);
        if p_priorities is null and v_owners = v_ids then
            perform ff__insert_executions(v_ids, p_payloads, array_fill(s, array[v_count]), v_now, p_flow_id,
                                          coalesce(f.public_flow_state = 'building', false));
        else
            for r in
                select array_agg(x.id order by x.n) as ids, array_agg(x.payload order by x.n) as payloads, x.priority
                  from unnest(v_ids, v_owners, p_payloads, p_priorities) with ordinality x(id, owner, payload, priority, n)
                 where x.id = x.owner group by x.priority
            loop
                s.priority := greatest(0, least(coalesce(r.priority, v_default), 9000));
                perform ff__insert_executions(r.ids, r.payloads, array_fill(s, array[cardinality(r.ids)]), v_now,
                                              p_flow_id, coalesce(f.public_flow_state = 'building', false));
            end loop;
        end if;
        if v_armed and s.delay_until_ms is null then
            perform ff__wake_lane(p_lane_id);
        end if;
        if p_flow_id is not null then
            perform ff__grow_flow(p_flow_id, (select count(*)::int from unnest(v_ids, v_owners) x(id, owner)
                                               where x.id = x.owner), v_now);
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

comment on function ff_create_executions(text, bytea[], text[], int[], text, jsonb, jsonb, text[], bigint, bigint, bigint,
                                         text, uuid, text, text) is
$$Submits up to 10 000 executions to a lane in one call, all or none; everything but payload, key and priority is the same
for all. Rows come in the order of p_payloads. A key that is repeated inside the call answers created, then duplicate.

Outcomes: outcome = created | duplicate
Nullable: public_state
Errors: invalid_input, payload_too_large, invalid_lane_id, invalid_policy, invalid_capabilities, invalid_tag_key, quota_policy_not_found, budget_not_found, flow_not_found, idempotency_conflict, lane_not_accepting, flow_already_terminal$$;
