-- Locks: the flow (waits for it), under which alone summaries are written and deleted. Repeatable.
create or replace function ff_project_flow_summary(
    p_flow_id uuid, out projected boolean, out derived_state text, out total_members int,
    out members_waiting int, out members_delayed int, out members_rate_limited int, out members_waiting_children int,
    out members_active int, out members_suspended int, out members_resumable int, out members_completed int, out
    members_failed int, out members_cancelled int, out members_expired int, out members_skipped int
)
language plpgsql volatile security definer
as $$
declare
    v_final boolean;
    v_projected boolean;
    s ff_flow_summary;
begin
    if p_flow_id is null then
        perform ff__invalid('p_flow_id', 'must not be null');
    end if;
    select f.terminal_at_ms is not null and f.live_members = 0, f.projected into v_final, v_projected
      from ff_flow_core f where f.flow_id = p_flow_id for update;
    if not found then
        perform ff__raise('flow_not_found', 'no such flow', jsonb_build_object('flow_id', p_flow_id));
    end if;
    s := ff__flow_counts(p_flow_id);
    s.projected_at_ms := ff__now_ms();
    s.final := v_final;
    projected := s.total_members > 0;
    if projected then
        insert into ff_flow_summary select s.*
        on conflict (flow_id) do update set
            projected_at_ms = excluded.projected_at_ms, final = excluded.final, derived_state = excluded.derived_state,
            total_members = excluded.total_members,
            members_waiting = excluded.members_waiting, members_delayed = excluded.members_delayed,
            members_rate_limited = excluded.members_rate_limited, members_waiting_children =
            excluded.members_waiting_children, members_active = excluded.members_active, members_suspended =
            excluded.members_suspended, members_resumable = excluded.members_resumable, members_completed =
            excluded.members_completed, members_failed = excluded.members_failed, members_cancelled =
            excluded.members_cancelled, members_expired = excluded.members_expired, members_skipped =
            excluded.members_skipped;
        if not v_projected then
            update ff_flow_core f set projected = true where f.flow_id = p_flow_id;
        end if;
    end if;
    derived_state := s.derived_state;
    total_members := s.total_members;
    members_waiting := s.members_waiting;
    members_delayed := s.members_delayed;
    members_rate_limited := s.members_rate_limited;
    members_waiting_children := s.members_waiting_children;
    members_active := s.members_active;
    members_suspended := s.members_suspended;
    members_resumable := s.members_resumable;
    members_completed := s.members_completed;
    members_failed := s.members_failed;
    members_cancelled := s.members_cancelled;
    members_expired := s.members_expired;
    members_skipped := s.members_skipped;
end
$$;

comment on function ff_project_flow_summary(uuid) is
$$Writes down how a flow stands (ff_flow_summary). projected: false for a flow without members, of which nothing is
written.

Outcomes: derived_state = open | running | blocked | completed | failed
Errors: invalid_input, flow_not_found$$;

-- How many members of a flow are in which public state, and what that makes of the flow: completed or failed once all
-- have ended, running while one is active, open while one could be claimed, else blocked.
create or replace function ff__flow_counts(p_flow_id uuid) returns ff_flow_summary
language plpgsql stable
as $$
declare
    s ff_flow_summary;
begin
    select p_flow_id as flow_id, 0 as projected_at_ms, count(*)::int as total_members,
           count(*) filter (where w.public_state = 'waiting')::int as members_waiting,
           count(*) filter (where w.public_state = 'delayed')::int as members_delayed,
           count(*) filter (where w.public_state = 'rate_limited')::int as members_rate_limited,
           count(*) filter (where w.public_state = 'waiting_children')::int as members_waiting_children,
           count(*) filter (where w.public_state = 'active')::int as members_active,
           count(*) filter (where w.public_state = 'suspended')::int as members_suspended,
           count(*) filter (where w.public_state = 'resumable')::int as members_resumable,
           count(*) filter (where w.public_state = 'completed')::int as members_completed,
           count(*) filter (where w.public_state = 'failed')::int as members_failed,
           count(*) filter (where w.public_state = 'cancelled')::int as members_cancelled,
           count(*) filter (where w.public_state = 'expired')::int as members_expired,
           count(*) filter (where w.public_state = 'skipped')::int as members_skipped,
           '' as derived_state, false as final
      into s
      from ff_execution c join ff_state_word w on w.state = c.state where c.flow_id = p_flow_id;
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

-- ff_project_flow_summary for a sweep: without waiting, and as ff__sweep_row answers.
create or replace function ff__project_flow(p_flow_id uuid) returns text
language plpgsql volatile
as $$
begin
    perform from ff_flow_core f where f.flow_id = p_flow_id for update skip locked;
    if not found then
        return case when exists (select from ff_flow_core f where f.flow_id = p_flow_id) then 'busy' else 'idle' end;
    end if;
    perform ff_project_flow_summary(p_flow_id);
    return 'done';
end
$$;
