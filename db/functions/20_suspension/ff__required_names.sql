-- The distinct signal names that a checked condition (ff__check_condition.targets) wants on one waitpoint, in the order
-- of the tree; none when any name will do.
create or replace function ff__required_names(p_targets jsonb, p_key text) returns text[]
language plpgsql immutable
as $$
begin
    if exists (select from jsonb_array_elements(p_targets) t(pair)
                where t.pair ->> 0 = p_key and t.pair -> 1 = 'null') then
        return '{}'::text[];
    end if;
    return array(select n.name
                   from jsonb_array_elements(p_targets) with ordinality t(pair, n),
                        jsonb_array_elements_text(t.pair -> 1) with ordinality n(name, m)
                  where t.pair ->> 0 = p_key
                  group by n.name order by min(t.n), min(n.m));
end
$$;
