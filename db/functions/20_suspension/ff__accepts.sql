-- Whether some leaf or count node of a condition accepts a signal of this name on this waitpoint. Pure.
create or replace function ff__accepts(p_condition jsonb, p_key text, p_name text) returns boolean
language plpgsql immutable parallel safe
as $$
declare
    v_member jsonb;
begin
    case p_condition ->> 'kind'
        when 'single' then
            return p_condition ->> 'waitpoint_key' = p_key and ff__matches(p_condition -> 'matcher', p_name);
        when 'count' then
            return p_condition -> 'waitpoints' ? p_key and ff__matches(p_condition -> 'matcher', p_name);
        when 'all_of' then
            for v_member in select x.node from jsonb_array_elements(p_condition -> 'members') x(node) loop
                if ff__accepts(v_member, p_key, p_name) then
                    return true;
                end if;
            end loop;
        else
            null;
    end case;
    return false;
end
$$;
