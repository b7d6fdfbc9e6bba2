-- The names that a matcher asks for, as a json array; json null for any name. p_path is the node's.
-- Errors: invalid_resume_condition.
create or replace function ff__check_matcher(p_matcher jsonb, p_path text, p_max_chars int) returns jsonb
language plpgsql stable
as $$
declare
    v_names jsonb;
    v_name jsonb;
begin
    if p_matcher = '"wildcard"' then
        return 'null'::jsonb;
    elsif jsonb_typeof(p_matcher) <> 'object' then
        perform ff__condition_fault('wrong_type', p_path);
    elsif p_matcher - 'by_name' = '{}' and p_matcher <> '{}' then
        v_names := jsonb_build_array(p_matcher -> 'by_name');
    elsif p_matcher - 'one_of' = '{}' and p_matcher <> '{}' then
        v_names := p_matcher -> 'one_of';
        if jsonb_typeof(v_names) <> 'array' then
            perform ff__condition_fault('wrong_type', p_path);
        elsif jsonb_array_length(v_names) not between 1 and 32
              or jsonb_array_length(v_names) <> (select count(distinct x.name) from jsonb_array_elements(v_names) x(name))
        then
            perform ff__condition_fault('wrong_type', p_path);
        end if;
    else
        perform ff__condition_fault(case p_matcher when '{}' then 'missing_key' else 'unknown_key' end, p_path);
    end if;
    for v_name in select x.name from jsonb_array_elements(v_names) x(name) loop
        if jsonb_typeof(v_name) <> 'string' then
            perform ff__condition_fault('wrong_type', p_path);
        elsif v_name = '""' then
            perform ff__condition_fault('empty_signal_name', p_path);
        elsif v_name #>> '{}' like E'\\_\\_%' then
            perform ff__condition_fault('reserved_signal_name', p_path);
        elsif not ff__is_name(v_name #>> '{}', p_max_chars) then
            perform ff__condition_fault('wrong_type', p_path);
        end if;
    end loop;
    return v_names;
end
$$;
