-- The capability sets that may wait on a lane and that a worker covers, as caps_keys of the ready index. A worker with few
-- tokens covers few sets: all of them, whether or not they wait. Otherwise a loose scan: one probe per distinct set that
-- waits, however many rows each has. Work that needs nothing ('') is always covered. p_limited: among work that needs
-- admission, or that needs none.
create or replace function ff__covered_keys(p_lane_id text, p_capabilities text[], p_limited boolean) returns text[]
language plpgsql stable
as $$
declare
    v_keys text[] := array[''];
    v_key text := '';
    v_from text := ' '; -- what needs nothing is known already, and sorts before any other set
    v_example uuid;
    v_needed text[];
begin
    if p_capabilities = '{}' then
        return v_keys;
    elsif cardinality(p_capabilities) <= 4 then
        return array(
            select ff__caps_key(array(select t.token from unnest(p_capabilities) with ordinality t(token, n)
                                       where (s.members >> (t.n::int - 1)) & 1 = 1 order by t.n))
              from generate_series(0, (1 << cardinality(p_capabilities)) - 1) s(members));
    end if;
    loop
        select c.caps_key, c.execution_id into v_key, v_example from ff_exec_core c
         where c.lane_id = p_lane_id and c.limited = p_limited and c.blocking_reason = 'waiting_for_worker' and not c.flow_stopped
           and c.caps_key >= v_from
         order by c.caps_key limit 1;
        exit when not found;
        v_from := v_key || chr(1); -- the next set: no token holds a control character
        if v_key like ' %' then
            -- A hash: ask one of its executions for the tokens.
            v_needed := (select i.required_capabilities from ff_exec_input i where i.execution_id = v_example);
        else
            v_needed := string_to_array(v_key, ',');
        end if;
        if v_needed <@ p_capabilities then
            v_keys := v_keys || v_key;
        elsif v_key not like ' %' and v_needed[1] <> all (p_capabilities) then
            -- Sets that begin with a token the worker lacks are jumped over, all of them at once.
            v_from := (select min(t.token collate "C") from unnest(p_capabilities) t(token)
                        where t.token collate "C" > v_needed[1]);
            exit when v_from is null;
        end if;
    end loop;
    return v_keys;
end
$$;
