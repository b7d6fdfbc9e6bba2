-- How many members of a flow are in which public state, and what that makes of the flow: completed or failed once all
-- have ended, running while one is active, open while one could be claimed, else blocked.
create or replace function ff__flow_counts(p_flow_id uuid) returns ff_flow_summary
language plpgsql stable
as $$
declare
    s ff_flow_summary;
begin
    select p_flow_id as flow_id, 0 as projected_at_ms, count(*)::int as total_members,
           count(*) filter (where c.public_state = 'waiting')::int as members_waiting,
           count(*) filter (where c.public_state = 'delayed')::int as members_delayed,
           count(*) filter (where c.public_state = 'rate_limited')::int as members_rate_limited,
           count(*) filter (where c.public_state = 'waiting_children')::int as members_waiting_children,
           count(*) filter (where c.public_state = 'active')::int as members_active,
           count(*) filter (where c.public_state = 'suspended')::int as members_suspended,
           count(*) filter (where c.public_state = 'resumable')::int as members_resumable,
           count(*) filter (where c.public_state = 'completed')::int as members_completed,
           count(*) filter (where c.public_state = 'failed')::int as members_failed,
           count(*) filter (where c.public_state = 'cancelled')::int as members_cancelled,
           count(*) filter (where c.public_state = 'expired')::int as members_expired,
           count(*) filter (where c.public_state = 'skipped')::int as members_skipped,
           '' as derived_state, false as final
      into s
      from ff_exec_core c where c.flow_id = p_flow_id;
    s.derived_state := case
        when s.total_members = 0 then 'open'
        when s.members_completed + s.members_failed + s.members_cancelled + s.members_expired + s.members_skipped
             = s.total_members then case when ff__flow_failed(p_flow_id) then 'failed' else 'completed' end
        when s.members_active > 0 then 'running'
        when s.members_waiting + s.members_resumable > 0 then 'open'
        else 'blocked' end;
    return s;
end
$$;
