-- A cycle in a graph of nodes 1 .. p_nodes with edges p_from[i] -> p_to[i], as a list of nodes, or NULL if there is none.
-- Takes nodes away that wait for nothing, until none is left (a topological sort): time linear in nodes and edges. What
-- remains contains a cycle, which is met by walking back through it.
create or replace function ff__find_cycle(p_nodes int, p_from int[], p_to int[]) returns int[]
language plpgsql stable
as $$
declare
    v_to int[];
    v_first int[];
    v_open int[];
    v_queue int[] := array_fill(0, array[p_nodes]);
    v_before int[];
    v_tail int := 0;
    v_head int := 0;
    v_node int;
    v_next int;
    v_path int[] := '{}'::int[];
begin
    -- The edges by their origin: those of node n are v_to[v_first[n]] .. v_to[v_first[n + 1] - 1].
    select array_agg(e.t order by e.f) into v_to from unnest(p_from, p_to) e(f, t);
    select array_agg(x.first order by x.n) into v_first
      from (select g.n, (1 + coalesce(sum(count(e.f)) over (order by g.n rows between unbounded preceding
                                                             and 1 preceding), 0))::int as first
              from generate_series(1, p_nodes + 1) g(n) left join unnest(p_from) e(f) on e.f = g.n group by g.n) x;
    select array_agg(x.open order by x.n) into v_open
      from (select g.n, count(e.t)::int as open
              from generate_series(1, p_nodes) g(n) left join unnest(p_to) e(t) on e.t = g.n group by g.n) x;
    for v_node in 1..p_nodes loop
        if v_open[v_node] = 0 then
            v_tail := v_tail + 1;
            v_queue[v_tail] := v_node;
        end if;
    end loop;
    while v_head < v_tail loop
        v_head := v_head + 1;
        v_node := v_queue[v_head];
        for i in v_first[v_node]..v_first[v_node + 1] - 1 loop
            v_next := v_to[i];
            v_open[v_next] := v_open[v_next] - 1;
            if v_open[v_next] = 0 then
                v_tail := v_tail + 1;
                v_queue[v_tail] := v_next;
            end if;
        end loop;
    end loop;
    if v_tail = p_nodes then
        return null;
    end if;

    select array_agg(x.before order by x.n) into v_before
      from (select g.n, min(e.f) filter (where v_open[e.f] > 0) as before
              from generate_series(1, p_nodes) g(n) left join unnest(p_from, p_to) e(f, t) on e.t = g.n
             group by g.n) x;
    v_node := (select min(x.n) from unnest(v_open) with ordinality x(open, n) where x.open > 0);
    for i in 1..p_nodes loop
        v_node := v_before[v_node];
    end loop;
    -- After so many steps back it is on a cycle: once around.
    v_next := v_node;
    loop
        v_path := v_node || v_path;
        v_node := v_before[v_node];
        exit when v_node = v_next;
    end loop;
    return v_path;
end
$$;
