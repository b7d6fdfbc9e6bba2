-- What one field of a cron expression allows, in order: lists of *, a, a-b, with /step after * or a range. p_names
-- stand for p_min and on. Errors: invalid_schedule.
create or replace function ff__cron_field(
    p_field text, p_value text, p_min int, p_max int, p_names text[] default '{}'
) returns int[]
language plpgsql stable
as $$
declare
    v_item text;
    v_parts text[];
    v_ends int[];
    v_end text;
    v_step int;
    v_found int[] := '{}'::int[];
begin
    foreach v_item in array string_to_array(lower(p_value collate "C"), ',') loop
        v_parts := regexp_match(v_item, E'^(\\*|[0-9]{1,4}|[a-z]{3})(-([0-9]{1,4}|[a-z]{3}))?(/([0-9]{1,4}))?$');
        if v_parts is null or (v_parts[1] = '*' and v_parts[2] is not null) then
            perform ff__invalid_schedule(
                p_field, v_item, 'only numbers, names, ranges a-b, lists a,b and steps */n or a-b/n are understood');
        elsif v_parts[4] is not null and v_parts[1] <> '*' and v_parts[2] is null then
            perform ff__invalid_schedule(p_field, v_item, 'a step needs a range or * before it');
        end if;
        v_step := coalesce(v_parts[5]::int, 1);
        if v_step = 0 then
            perform ff__invalid_schedule(p_field, v_item, 'the step must be 1 or more');
        end if;
        v_ends := '{}';
        foreach v_end in array array[v_parts[1], coalesce(v_parts[3], v_parts[1])] loop
            if v_end = '*' then
                v_ends := array[p_min, p_max];
            elsif v_end ~ '^[0-9]' then
                v_ends := v_ends || v_end::int;
            elsif array_position(p_names, v_end) is not null then
                v_ends := v_ends || p_min + array_position(p_names, v_end) - 1;
            else
                perform ff__invalid_schedule(p_field, v_item, format('%s is no name that this field has', v_end));
            end if;
        end loop;
        if v_ends[1] not between p_min and p_max or v_ends[2] not between p_min and p_max then
            perform ff__invalid_schedule(p_field, v_item, format('must be between %s and %s', p_min, p_max));
        elsif v_ends[1] > v_ends[2] then
            perform ff__invalid_schedule(p_field, v_item, 'the range ends before it begins');
        end if;
        v_found := v_found || array(select g.n from generate_series(v_ends[1], v_ends[2], v_step) g(n));
    end loop;
    return array(select distinct f.n from unnest(v_found) f(n) order by f.n);
end
$$;
