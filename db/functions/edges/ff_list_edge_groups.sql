create or replace function ff_list_edge_groups(p_flow_id uuid, p_after text default null, p_limit int default 100)
returns table (
    downstream_execution_id text, policy text, k int, on_satisfied text, group_state text, n_edges int, n_success int,
    n_failed int, n_skipped int, n_running int
)
language plpgsql stable security definer
as $$
declare
    v_after uuid := ff__decode_execution_cursor(p_after);
begin
    perform ff__check_limit(p_limit);
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    end if;
    return query
        select ff__wire_id(ff__partition(g.downstream_eid), g.downstream_eid), g.policy_kind, g.k, g.on_satisfied,
               g.group_state, g.n_edges, g.n_success, g.n_failed, g.n_skipped,
               g.n_edges - g.n_success - g.n_failed - g.n_skipped
          from ff_edge_group g
         where g.flow_id = p_flow_id and (v_after is null or g.downstream_eid > v_after)
         order by g.downstream_eid limit p_limit;
end
$$;

comment on function ff_list_edge_groups(uuid, text, int) is
$$Edge groups of a flow, ordered by member: policy, counters and decision. p_after: the last downstream_execution_id
read.

Outcomes: policy = all_of | any_of | quorum
Outcomes: on_satisfied = cancel_remaining | let_run
Outcomes: group_state = pending | satisfied | impossible | cancelled
Nullable: k, on_satisfied
Errors: invalid_input, invalid_cursor$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
