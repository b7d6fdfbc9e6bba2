-- Locks: the flow (waits for it); summaries are written and deleted only under this lock. Repeatable.
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
$$Stores the current member counts and derived state of a flow in ff_flow_summary. projected: false if the flow has no
members; nothing is stored then.

Outcomes: derived_state = open | running | blocked | completed | failed
Errors: invalid_input, flow_not_found$$;
-- grant: ff_producer, ff_operator, ff_admin
