-- The same event of many executions that have the same ord and worker, as one row: ff__emit_event with arrays, element by
-- element in their order. What all of them have in common is stored once. One execution, and executions whose ids lie more
-- than twelve days apart, get rows of their own: ff__event_rows would look through too many. More than 1000 get several.
-- p_tag_sets, p_flow_ids: NULL elements for none. p_want_ids: returns the ids of the events, in the order of the arrays;
-- NULL if the type is muted.
create or replace function ff__emit_many(
    p_family text,
    p_event_type text,
    p_reason text,
    p_now_ms bigint,
    p_ord bigint,
    p_execution_ids uuid[],
    p_attempt_indexes int[],
    p_flow_ids uuid[],
    p_lane_ids text[],
    p_namespaces text[],
    p_tag_sets jsonb[],
    p_lease_ids uuid[] default null,
    p_lease_epochs bigint[] default null,
    p_worker_id text default null,
    p_worker_instance_id text default null,
    p_lease_type text default null,
    p_lease_reason text default null,
    p_want_ids boolean default false
) returns bigint[]
language plpgsql volatile
as $$
declare
    v_size int := cardinality(p_execution_ids);
    v_ids uuid[];
    v_first_ms bigint;
    v_last_ms bigint;
    v_step int;
    v_event_id bigint;
    v_event_ids bigint[];
    v_attempt boolean := coalesce(p_attempt_indexes[1] = all (p_attempt_indexes), false);
    v_epoch boolean := coalesce(p_lease_epochs[1] = all (p_lease_epochs), false);
    v_flow boolean := coalesce(p_flow_ids[1] = all (p_flow_ids), false);
    v_lane boolean := coalesce(p_lane_ids[1] = all (p_lane_ids), false);
    v_namespace boolean := coalesce(p_namespaces[1] = all (p_namespaces), false);
begin
    if v_size is null or v_size = 0 then
        return '{}'::bigint[];
    elsif v_size = 1 then
        v_event_id := ff__emit_event(
            p_family, p_event_type, p_reason, p_now_ms, p_ord, p_execution_ids[1], p_attempt_indexes[1], p_flow_ids[1],
            p_lane_ids[1], p_namespaces[1], p_tag_sets[1], p_lease_ids[1], p_lease_epochs[1], p_worker_id,
            p_worker_instance_id, p_lease_type, p_lease_reason);
        return array[v_event_id];
    end if;
    v_ids := array(select x.id from unnest(p_execution_ids) x(id) order by x.id);
    -- The time in an id is its first twelve digits.
    v_first_ms := ('x' || left(v_ids[1]::text, 8) || substr(v_ids[1]::text, 10, 4))::bit(48)::bigint;
    v_last_ms := ('x' || left(v_ids[v_size]::text, 8) || substr(v_ids[v_size]::text, 10, 4))::bit(48)::bigint;
    v_step := case when v_last_ms - v_first_ms > 1048576000 then 1 else 1000 end;
    if v_size > v_step then
        for n in 1..v_size by v_step loop
            v_event_ids := v_event_ids || ff__emit_many(
                p_family, p_event_type, p_reason, p_now_ms, p_ord, p_execution_ids[n:n + v_step - 1],
                p_attempt_indexes[n:n + v_step - 1], p_flow_ids[n:n + v_step - 1], p_lane_ids[n:n + v_step - 1],
                p_namespaces[n:n + v_step - 1], p_tag_sets[n:n + v_step - 1], p_lease_ids[n:n + v_step - 1],
                p_lease_epochs[n:n + v_step - 1], p_worker_id, p_worker_instance_id, p_lease_type, p_lease_reason,
                p_want_ids);
        end loop;
        return v_event_ids;
    end if;
    v_event_id := ff__emit_event(
        p_family, p_event_type, p_reason, p_now_ms, p_ord, null, case when v_attempt then p_attempt_indexes[1] end,
        case when v_flow then p_flow_ids[1] end, case when v_lane then p_lane_ids[1] end,
        case when v_namespace then p_namespaces[1] end, null, null, case when v_epoch then p_lease_epochs[1] end,
        p_worker_id, p_worker_instance_id, p_lease_type, p_lease_reason,
        p_size => v_size,
        p_batch => (
            case when v_last_ms - v_first_ms <= 1000 then 0 when v_last_ms - v_first_ms <= 16000 then 1
                 when v_last_ms - v_first_ms <= 256000 then 2 when v_last_ms - v_first_ms <= 4096000 then 3
                 when v_last_ms - v_first_ms <= 65536000 then 4 else 5 end,
            v_first_ms, v_last_ms, p_execution_ids, case when not v_attempt then p_attempt_indexes end,
            case when not v_flow and num_nonnulls(variadic p_flow_ids) > 0 then p_flow_ids end,
            case when not v_lane then p_lane_ids end, case when not v_namespace then p_namespaces end,
            case when num_nonnulls(variadic p_tag_sets) > 0 then p_tag_sets end, p_lease_ids,
            case when not v_epoch then p_lease_epochs end)::ff_event_batch);
    if p_want_ids and v_event_id is not null then
        return array(select v_event_id + 2 * n from generate_series(0, v_size - 1) n);
    end if;
    return null;
end
$$;
