-- Rules of maintenance that must hold at every commit; each branch returns the rows that break one.
create or replace function ff__invariants_maintenance() returns table (invariant text, subject text, detail text)
language plpgsql stable
as $$
#variable_conflict use_column
begin
    return query
    select 'projection', f.flow_id::text, 'is not projected any more, though it has not ended'
      from ff_flow_core f join ff_flow_summary s on s.flow_id = f.flow_id
     where f.projected and s.final and (f.terminal_at_ms is null or f.live_members > 0)
    union all
    select 'projection', f.flow_id::text, 'counts as projected and has no summary'
      from ff_flow_core f
     where f.projected and f.node_count > 0
       and not exists (select from ff_flow_summary s where s.flow_id = f.flow_id)
       and not exists (select from ff_reconciler_error r where r.name = 'project_flows' and r.row_key = f.flow_id::text)
    union all
    select 'backed_off', x.name || ' ' || x.row_key, 'belongs to no step'
      from ff_reconciler_error x where not exists (select from ff_reconciler r where r.name = x.name);
end
$$;
