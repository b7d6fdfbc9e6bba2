-- Locks: the flow, the idempotency key (waits for a concurrent request with the same key). Replay: by key or by
-- execution id, 'duplicate' with the existing execution; priority, policy, tags and parent are not compared. The parent
-- is locked only against deletion (FOR KEY SHARE): its lease can be renewed while this transaction is open. If the
-- parent ends meanwhile, the row in ff_child_work makes maintenance cancel the child. The parent exists before the
-- child and is never changed, so cycles are impossible.
create or replace function ff_create_execution(
    p_lane_id text,
    p_execution_kind text default '',
    p_payload bytea default null,
    p_idempotency_key text default null,
    p_priority int default null,
    p_policy jsonb default '{}',
    p_tags jsonb default '{}',
    p_required_capabilities text[] default '{}',
    p_delay_until_ms bigint default null,
    p_delay_ms bigint default null,
    p_deadline_at_ms bigint default null,
    p_namespace text default 'default',
    p_flow_id uuid default null,
    p_execution_id text default null,
    p_payload_encoding text default null,
    p_creator text default '',
    p_parent_execution_id text default null,
    p_detached boolean default false,
    out outcome text,
    out execution_id text,
    out public_state text,
    out created_at_ms bigint
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_read bigint := v_now;
    v_plain boolean := false;
    v_alone boolean;
    v_id uuid;
    v_existing uuid;
    v_parent uuid;
    v_parent_state text;
    v_parent_ended boolean;
    v_hash bytea;
    v_lane_state text;
    v_armed boolean;
    v_queue int;
    s ff_submission;
    f ff_flow_core;
begin
    select l.state, l.wake_armed, q.queue_id into v_lane_state, v_armed, v_queue
      from ff_lane_registry l
      left join ff_queue q on q.lane_id = l.lane_id and not q.limited and q.namespace = p_namespace and q.caps_key = ''
     where l.lane_id = p_lane_id;
    if not found then
        perform ff__check_lane_id(p_lane_id);
    end if;
    if p_policy = '{}' and p_tags = '{}' and p_required_capabilities = '{}' and p_creator = ''
       and num_nonnulls(p_delay_until_ms, p_delay_ms, p_deadline_at_ms) = 0
       and octet_length(p_namespace) between 1 and 64 and octet_length(p_execution_kind) <= 128
       and octet_length(coalesce(p_payload_encoding, '')) <= 64
       and concat(p_namespace, p_execution_kind, p_payload_encoding) !~ E'[\\x01-\\x1f\\x7f]'
    then
        -- Fast path: default policy, tags, capabilities and times need no parsing.
        v_plain := true;
        s := (p_lane_id, p_namespace, p_execution_kind, '', p_payload_encoding, null, null, '{}', '',
              greatest(0, least(coalesce(p_priority, 0), 9000)), null, null, null, null, 604800000, null, null, false,
              'ready', v_queue)::ff_submission;
    else
        s := ff__check_submission(p_lane_id, p_execution_kind, p_priority, p_policy, p_tags, p_required_capabilities,
                                  p_delay_until_ms, p_delay_ms, p_deadline_at_ms, p_namespace, p_payload_encoding,
                                  p_creator, v_now);
    end if;
    if octet_length(p_idempotency_key) > 512 then
        perform ff__invalid('p_idempotency_key', 'must have at most 512 bytes');
    elsif octet_length(p_payload) > 1024 then
        perform ff__check_size('max_execution_bytes', 'payload', p_payload);
    end if;
    v_alone := num_nonnulls(p_execution_id, p_flow_id, p_parent_execution_id, nullif(p_idempotency_key, '')) = 0
               and p_detached is not null;
    if v_alone then
        v_id := ff__mint_id(v_now);
    else
        if p_execution_id is null then
            v_id := ff__mint_id(v_now, ff__partition(p_flow_id));
        else
            v_id := ff__execution_uuid(p_execution_id);
            if v_id is null then
                perform ff__raise('invalid_execution_id', 'the partition is not the last byte of the uuid',
                                  jsonb_build_object('execution_id', p_execution_id));
            end if;
        end if;
        if p_detached is null then
            perform ff__invalid('p_detached', 'must not be null');
        elsif p_parent_execution_id is not null then
            v_parent := ff__execution_uuid(p_parent_execution_id);
        end if;
        if p_flow_id is not null then
            perform ff__check_partition(p_flow_id, v_id);
            f := ff__lock_flow(p_flow_id);
            v_now := ff__now_ms();
        end if;
        v_hash := ff__request_hash(p_lane_id, p_execution_kind, p_payload, p_payload_encoding, p_flow_id);
        if p_idempotency_key <> '' and s.dedup_window_ms > 0 then
            v_existing := ff__claim_idempotency_key(p_namespace, p_idempotency_key, s.dedup_window_ms, v_id, v_hash);
            v_now := ff__now_ms();
        end if;
        if v_existing is null and p_execution_id is not null then
            v_existing := ff__same_request(v_id, p_namespace, v_hash, p_idempotency_key);
        end if;
        if v_existing is null and v_now > v_read and not v_plain then
            -- The call has waited for a lock: relative times count from the end of the wait.
            s := ff__check_submission(p_lane_id, p_execution_kind, p_priority, p_policy, p_tags,
                                      p_required_capabilities, p_delay_until_ms, p_delay_ms, p_deadline_at_ms,
                                      p_namespace, p_payload_encoding, p_creator, v_now);
        end if;
    end if;
    if v_existing is null then
        if v_lane_state is null or v_lane_state not in ('active', 'paused') then
            v_armed := ff__open_lane(p_lane_id, v_now);
        end if;
        if not v_alone then
            if f.public_flow_state = 'cancelled' then
                perform ff__raise_flow_over(f);
            end if;
            if p_parent_execution_id is not null then
                perform from ff_execution i where i.execution_id = v_parent for key share;
                select x.public_state, x.lifecycle_phase = 'terminal' into v_parent_state, v_parent_ended
                  from ff_exec_core x where x.execution_id = v_parent;
                if not found then
                    perform ff__raise_not_found(p_parent_execution_id);
                elsif v_parent_ended and not p_detached then
                    perform ff__raise('execution_already_terminal',
                                      format('parent %s is %s', p_parent_execution_id, v_parent_state),
                                      jsonb_build_object('execution_id', p_parent_execution_id,
                                                         'public_state', v_parent_state));
                end if;
            end if;
            if p_flow_id is not null then
                s.quota_policy_id := coalesce(s.quota_policy_id, f.quota_policy_id);
                s.budget_ids := coalesce(s.budget_ids, f.budget_ids);
                s.limited := s.limited or num_nonnulls(s.quota_policy_id, s.budget_ids) > 0;
            end if;
            if p_execution_id is not null and not s.limited then
                -- A quota slot may already be reserved under this id; limited makes the end of the execution release
                -- it.
                s.limited := exists (select from ff_quota_reservation r where r.execution_id = v_id);
            end if;
        end if;
        if s.queue_id is null or s.limited then
            s.queue_id := ff__queue(p_lane_id, p_namespace, s.limited, s.caps_key, s.required_capabilities);
        end if;
        if p_execution_id is null then
            perform ff__insert_executions(array[v_id], array[p_payload], s, v_now, null, p_flow_id,
                                          coalesce(f.public_flow_state = 'building', false));
        else
            begin
                perform ff__insert_executions(array[v_id], array[p_payload], s, v_now, null, p_flow_id,
                                              coalesce(f.public_flow_state = 'building', false));
            exception when unique_violation then
                -- Another transaction created the same id between the check and the insert.
                v_existing := ff__same_request(v_id, p_namespace, v_hash, p_idempotency_key);
                if v_existing is null then
                    perform ff__raise('execution_id_conflict', 'an execution with this id has just been removed',
                                      jsonb_build_object('execution_id', p_execution_id));
                end if;
            end;
        end if;
    end if;
    if v_existing is not null then
        outcome := 'duplicate';
        execution_id := ff__wire_id(ff__partition(v_existing), v_existing);
        select c.public_state, c.created_at_ms
          into ff_create_execution.public_state, ff_create_execution.created_at_ms
          from ff_exec_core c where c.execution_id = v_existing;
        if p_flow_id is not null then
            perform ff__close_flow(p_flow_id);
        end if;
        return;
    end if;

    if v_parent is not null then
        with child as (
            insert into ff_child (child_id, parent_id, created_at_ms, detached)
            values (v_id, v_parent, v_now, p_detached)
        )
        insert into ff_child_work (parent_id, action) select v_parent, 'check' where not p_detached;
    end if;
    if v_armed and s.delay_until_ms is null then
        perform ff__notify_lane(p_lane_id);
    end if;
    if p_flow_id is not null then
        perform ff__count_new_members(p_flow_id, 1, v_now);
        perform ff__close_flow(p_flow_id);
    end if;

    outcome := 'created';
    execution_id := ff__wire_id(ff__partition(v_id), v_id);
    public_state := case when s.delay_until_ms is null then 'waiting' else 'delayed' end;
    created_at_ms := v_now;
end
$$;

comment on function ff_create_execution(text, text, bytea, text, int, jsonb, jsonb, text[], bigint, bigint, bigint,
                                        text, uuid, text, text, text, text, boolean) is
$$Submits one execution to a lane. An unknown lane is registered. The execution is claimable at once, or when its delay
ends.
p_idempotency_key: within policy.dedup_window_ms (7 days) the same request in the same namespace returns duplicate with
the existing execution; a different request is rejected. p_priority: 0 to 9000, higher first; clamped to that range.
p_delay_until_ms, p_delay_ms: one of them, or the policy's. p_deadline_at_ms: the execution expires then, in any state.
p_policy: retries, timeouts, limits; stored with its defaults written out.
p_required_capabilities: only workers that have all of them can claim the execution.
p_flow_id: makes it a member of that flow; a flow that has completed or failed opens again.
p_execution_id: an id chosen by the caller, usable once. The same request again returns duplicate. After the execution
was deleted, the id is rejected as long as events, children or an idempotency key of it are kept.
p_parent_execution_id: makes it a child of that execution, in any namespace. When the parent ends without success, a
child that has not ended is cancelled with the reason parent_ended, even while it runs. When the parent is replayed, a
child that did not succeed is replayed too. p_detached: the child is listed, but neither cancelled nor replayed with the
parent, and can be created after the parent has ended.

Outcomes: outcome = created | duplicate
Nullable: public_state, created_at_ms
Errors: invalid_input, payload_too_large, invalid_lane_id, invalid_policy, invalid_capabilities, invalid_tag_key
Errors: quota_policy_not_found, budget_not_found, invalid_execution_id, partition_mismatch, flow_not_found
Errors: idempotency_conflict, execution_id_conflict, lane_not_accepting, flow_already_terminal, execution_not_found
Errors: execution_already_terminal$$;
-- grant: ff_producer, ff_operator, ff_admin

-- Looks up the execution with an id chosen by the caller: NULL if there is none, its id if it was created by the same
-- request in the same namespace. p_idempotency_key: the key of the request.
-- Errors: execution_id_conflict, also if the execution was deleted and rows that refer to it are still kept.
create or replace function ff__same_request(
    p_execution_id uuid, p_namespace text, p_request_hash bytea, p_idempotency_key text
) returns uuid
language plpgsql volatile
as $$
declare
    v_namespace text;
    v_hash bytea;
begin
    select i.namespace, i.request_hash into v_namespace, v_hash
      from ff_exec_input i where i.execution_id = p_execution_id;
    if not found then
        if ff__is_id_in_use(p_execution_id, p_namespace, p_idempotency_key) then
            perform ff__raise('execution_id_conflict',
                              'the id is that of a deleted execution of which events, children or a key are still kept',
                              jsonb_build_object('execution_id',
                                                 ff__wire_id(ff__partition(p_execution_id), p_execution_id)));
        end if;
        return null;
    elsif v_hash <> p_request_hash or v_namespace <> p_namespace then
        perform ff__raise('execution_id_conflict', 'an execution with this id came from a different request',
                          jsonb_build_object('execution_id',
                                             ff__wire_id(ff__partition(p_execution_id), p_execution_id)));
    end if;
    return p_execution_id;
end
$$;
