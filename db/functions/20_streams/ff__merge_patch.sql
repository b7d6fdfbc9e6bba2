-- RFC 7396: p_patch applied to p_target. Null deletes, objects merge, everything else replaces; an object over something
-- else starts from {}.
create or replace function ff__merge_patch(p_target jsonb, p_patch jsonb) returns jsonb
language plpgsql immutable parallel safe
as $$
declare
    v_target jsonb := case when jsonb_typeof(p_target) = 'object' then p_target else '{}' end;
    v_deleted text[];
    v_merged jsonb;
begin
    if jsonb_typeof(p_patch) <> 'object' then
        return p_patch;
    end if;
    select array_agg(x.key) filter (where jsonb_typeof(x.value) = 'null'),
           jsonb_object_agg(x.key, case when jsonb_typeof(x.value) = 'object'
                                        then ff__merge_patch(v_target -> x.key, x.value) else x.value end)
               filter (where jsonb_typeof(x.value) <> 'null')
      into v_deleted, v_merged
      from jsonb_each(p_patch) x;
    if v_deleted is not null then
        v_target := v_target - v_deleted;
    end if;
    return v_target || coalesce(v_merged, '{}');
end
$$;
