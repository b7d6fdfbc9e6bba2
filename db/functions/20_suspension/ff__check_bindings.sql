-- The waitpoints that a suspension binds, in order. None given: a fresh one per key of the condition (p_targets, see
-- ff__check_condition), or one without a key for conditions that name none. A pending one that this execution does not
-- have is left for the suspension to refuse. Errors: invalid_waitpoint_binding (DETAIL.reason).
create or replace function ff__check_bindings(
    p_waitpoints jsonb, p_targets jsonb, p_execution_id uuid, p_max_chars int
) returns ff_binding[]
language plpgsql stable
as $$
declare
    c_uuid constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
    v_max int := ff__limit('max_waitpoints_per_suspension');
    v_given int := 0;
    v_keys text[] := array(select x.key from (select t.pair ->> 0 as key, min(t.n) as n
                                                from jsonb_array_elements(p_targets) with ordinality t(pair, n)
                                               group by 1) x order by x.n);
    v_bindings ff_binding[] := '{}'::ff_binding[];
    v_id jsonb;
    v_one record;
    b ff_binding;
begin
    if jsonb_typeof(p_waitpoints) <> 'array' then
        perform ff__binding_fault('wrong_type');
    elsif p_waitpoints is not null then
        v_given := jsonb_array_length(p_waitpoints);
    end if;
    if greatest(v_given, cardinality(v_keys)) > v_max then
        perform ff__binding_fault('too_many', jsonb_build_object('limit', v_max));
    elsif v_given = 0 then
        return case when v_keys = '{}' then array[(null, null, false)::ff_binding]
                    else array(select (k.key, null, false)::ff_binding
                                 from unnest(v_keys) with ordinality k(key, n) order by k.n) end;
    end if;

    for v_one in select x.item, x.n - 1 as index from jsonb_array_elements(p_waitpoints) with ordinality x(item, n) loop
        if jsonb_typeof(v_one.item) <> 'object' then
            perform ff__binding_fault('wrong_type', jsonb_build_object('index', v_one.index));
        end if;
        b.pending := v_one.item ? 'use_pending';
        v_id := v_one.item -> case when b.pending then 'use_pending' else 'waitpoint_id' end;
        if v_one.item - (case when b.pending then '{use_pending}' else '{key,waitpoint_id}' end)::text[] <> '{}' then
            perform ff__binding_fault('unknown_key', jsonb_build_object('index', v_one.index));
        elsif v_id is not null and (jsonb_typeof(v_id) <> 'string' or v_id #>> '{}' !~ c_uuid) then
            perform ff__binding_fault('wrong_type', jsonb_build_object('index', v_one.index));
        end if;
        b.waitpoint_id := (v_id #>> '{}')::uuid;
        if b.pending then
            b.waitpoint_key := (select w.waitpoint_key from ff_waitpoint w
                                 where w.waitpoint_id = b.waitpoint_id and w.execution_id = p_execution_id);
        elsif jsonb_typeof(v_one.item -> 'key') = 'string' and ff__is_name(v_one.item ->> 'key', p_max_chars) then
            b.waitpoint_key := v_one.item ->> 'key';
        else
            perform ff__binding_fault('wrong_type', jsonb_build_object('index', v_one.index));
        end if;
        if exists (select from unnest(v_bindings) o where o.waitpoint_key = b.waitpoint_key) then
            perform ff__binding_fault('duplicate_waitpoint_key', jsonb_build_object('key', b.waitpoint_key));
        elsif v_keys <> '{}' and b.waitpoint_key <> all (v_keys) then
            perform ff__binding_fault('binding_not_referenced', jsonb_build_object('key', b.waitpoint_key));
        end if;
        v_bindings := v_bindings || b;
    end loop;
    if not exists (select from unnest(v_bindings) o where o.waitpoint_key is null) then
        for v_one in select k.key from unnest(v_keys) with ordinality k(key, n) order by k.n loop
            if not exists (select from unnest(v_bindings) o where o.waitpoint_key = v_one.key) then
                perform ff__binding_fault('waitpoint_key_not_bound', jsonb_build_object('key', v_one.key));
            end if;
        end loop;
    end if;
    return v_bindings;
end
$$;
