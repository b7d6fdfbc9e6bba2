-- A list of json objects: which keys they may have, and of which json type each is (null stands for absent).
-- Errors: invalid_input (DETAIL arg, index from 0, key).
create or replace function ff__check_items(p_arg text, p_items jsonb, p_max int, p_types jsonb, p_required text[])
returns void
language plpgsql stable
as $$
declare
    r record;
begin
    if p_items is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif jsonb_typeof(p_items) <> 'array' then
        perform ff__invalid(p_arg, 'must be a json array');
    elsif jsonb_array_length(p_items) > p_max then
        perform ff__invalid(p_arg, format('must have at most %s items', p_max));
    end if;
    for r in
        select x.n, null::text as key, 'must hold json objects' as reason
          from jsonb_array_elements(p_items) with ordinality x(item, n) where jsonb_typeof(x.item) <> 'object'
         order by x.n limit 1
    loop
        perform ff__invalid(p_arg, r.reason, jsonb_build_object('index', r.n - 1));
    end loop;
    for r in
        select x.n, k.key,
               case when p_types -> k.key is null then 'has an unknown key'
                    else format('needs a %s there', p_types ->> k.key) end as reason
          from jsonb_array_elements(p_items) with ordinality x(item, n)
         cross join lateral jsonb_each(x.item) k
         where p_types ->> k.key is null or jsonb_typeof(k.value) not in (p_types ->> k.key, 'null')
         order by x.n, k.key limit 1
    loop
        perform ff__invalid(p_arg, r.reason, jsonb_build_object('index', r.n - 1, 'key', left(r.key, 64)));
    end loop;
    for r in
        select x.n, q.key
          from jsonb_array_elements(p_items) with ordinality x(item, n) cross join unnest(p_required) q(key)
         where x.item ->> q.key is null
         order by x.n, q.key limit 1
    loop
        perform ff__invalid(p_arg, 'lacks a key', jsonb_build_object('index', r.n - 1, 'key', r.key));
    end loop;
end
$$;
