-- Whether a condition is satisfied by these signals. Each count node counts for itself; an empty source identity is
-- nobody. Pure.
create or replace function ff__satisfied(p_condition jsonb, p_signals ff_seen_signal[]) returns boolean
language plpgsql immutable parallel safe
as $$
declare
    v_member jsonb;
begin
    case p_condition ->> 'kind'
        when 'single' then
            return exists (select from unnest(p_signals) s
                            where s.waitpoint_key = p_condition ->> 'waitpoint_key'
                              and ff__matches(p_condition -> 'matcher', s.signal_name));
        when 'count' then
            return (p_condition -> 'n')::int <= (
                select case p_condition ->> 'count_kind'
                           when 'distinct_waitpoints' then count(distinct s.waitpoint_key)
                           when 'distinct_signals' then count(distinct s.signal_id)
                           else count(distinct (s.source_type, s.source_identity)) filter (where s.source_identity <> '')
                       end
                  from unnest(p_signals) s
                 where p_condition -> 'waitpoints' ? s.waitpoint_key
                   and ff__matches(p_condition -> 'matcher', s.signal_name));
        when 'all_of' then
            for v_member in select x.node from jsonb_array_elements(p_condition -> 'members') x(node) loop
                if not ff__satisfied(v_member, p_signals) then
                    return false;
                end if;
            end loop;
            return true;
        else
            return false;
    end case;
end
$$;
