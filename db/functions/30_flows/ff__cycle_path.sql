-- The way from one member of a flow to another over its edges, whatever their state; NULL if there is none. Exact at any
-- size: each member is visited once. The way is found backwards through what can be reached, which has no cycle.
create or replace function ff__cycle_path(p_from uuid, p_to uuid) returns uuid[]
language plpgsql volatile
as $$
declare
    v_reached uuid[];
    v_at uuid := p_to;
    v_path uuid[] := array[p_to];
begin
    if not exists (select from ff_edge d where d.upstream_eid = p_from)
       or not exists (select from ff_edge d where d.downstream_eid = p_to) then
        return null;
    end if;
    with recursive r(id) as (
        select p_from
        union
        select d.downstream_eid from r join ff_edge d on d.upstream_eid = r.id)
    select array_agg(r.id) into v_reached from r;
    if not p_to = any (v_reached) then
        return null;
    end if;
    while v_at <> p_from loop
        select d.upstream_eid into v_at from ff_edge d
         where d.downstream_eid = v_at and d.upstream_eid = any (v_reached)
         order by d.upstream_eid limit 1;
        v_path := v_at || v_path;
    end loop;
    return v_path;
end
$$;
