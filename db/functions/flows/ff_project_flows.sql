-- Locks: the flows, without waiting. Safe to run many at once.
create or replace function ff_project_flows(
    p_limit int default 200, out processed int, out errors int, out more boolean
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint := ff__now_ms();
    v_scan refcursor;
begin
    -- Flows never projected, or reopened since; then live flows, least recently projected first.
    open v_scan for
        (select f.flow_id::text from ff_flow_core f where f.node_count > 0 and not f.projected order by f.created_at_ms)
        union all
        (select s.flow_id::text from ff_flow_summary s
          where not s.final and s.projected_at_ms < v_now
            and not exists (select from ff_flow_core f where f.flow_id = s.flow_id and not f.projected)
          order by s.projected_at_ms);
    select s.* into processed, errors, more from ff__sweep('project_flows', p_limit, v_scan) s;
    -- Live flows are projected repeatedly; only overdue ones set more.
    more := more and (exists (select from ff_flow_core f where f.node_count > 0 and not f.projected
                                 and not ff__is_backed_off('project_flows', f.flow_id::text))
                      or exists (select from ff_flow_summary s where not s.final and s.projected_at_ms <= v_now - 15000
                                    and not ff__is_backed_off('project_flows', s.flow_id::text)));
end
$$;

comment on function ff_project_flows(int) is
$$Projects flows (ff_project_flow_summary): live flows, least recently projected first, and ended flows once more.

Errors: invalid_input$$;
-- grant: ff_operator, ff_admin
