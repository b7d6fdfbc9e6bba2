-- The capability sets that wait on a lane and that a worker covers, as caps_keys of the ready index. A loose scan:
-- one probe per distinct set, however many rows each has. Work that needs nothing ('') is always covered.
create or replace function ff__covered_keys(p_lane_id text, p_capabilities text[]) returns text[]
language plpgsql stable
as $$
declare
    v_keys text[] := array[''];
    v_key text := '';
    v_example uuid;
    v_needed text[];
begin
    if p_capabilities = '{}' then
        return v_keys;
    end if;
    loop
        select c.caps_key, c.execution_id into v_key, v_example from ff_exec_core c
         where c.lane_id = p_lane_id and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
           and c.caps_key > v_key
         order by c.caps_key limit 1;
        exit when not found;
        if v_key like ' %' then
            -- A hash: ask one of its executions for the tokens.
            v_needed := (select i.required_capabilities from ff_exec_input i where i.execution_id = v_example);
        else
            v_needed := string_to_array(v_key, ',');
        end if;
        if v_needed <@ p_capabilities then
            v_keys := v_keys || v_key;
        end if;
    end loop;
    return v_keys;
end
$$;
