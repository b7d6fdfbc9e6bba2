create or replace function ff_read_dependency_inputs(p_execution_id text)
returns table (edge_id uuid, upstream_execution_id text, data_passing_ref text, outcome text, result bytea)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    return query
        select d.edge_id, ff__wire_id(u.partition_key, u.execution_id), d.data_passing_ref, d.upstream_outcome,
               case when u.state = 'completed' then u.result end
          from ff_edge d join ff_execution u on u.execution_id = d.upstream_eid
         where d.downstream_eid = v_id and d.edge_state in ('satisfied', 'failed', 'skipped')
         order by d.edge_id;
end
$$;

comment on function ff_read_dependency_inputs(text) is
$$Results of the executions that an execution waited for: one row per edge whose upstream has ended. The payload of the
execution itself is not changed.

Outcomes: outcome = success | failed | cancelled | expired | skipped
Nullable: data_passing_ref, result
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
