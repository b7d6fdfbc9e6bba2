-- Locks: the lane (waits for it).
create or replace function ff_set_lane_state(
    p_lane_id text,
    p_state text,
    p_reason text default null,
    out outcome text,
    out previous_state text,
    out state text
)
language plpgsql volatile security definer
as $$
declare
    v_now bigint;
    v_ord bigint := pg_current_xact_id()::text::bigint;
    v_last bigint;
begin
    perform ff__check_lane_id(p_lane_id);
    if p_state is null or p_state not in ('active', 'paused', 'draining', 'disabled') then
        perform ff__invalid('p_state', 'must be active, paused, draining or disabled');
    elsif p_reason is not null then
        perform ff__check_text('p_reason', p_reason, 0, 4096);
    end if;
    state := p_state;
    insert into ff_lane_registry (
        lane_id, state, state_reason, state_changed_at_ms, registered_at_ms, registered_by, last_event_ord)
    select p_lane_id, p_state, p_reason, n.now_ms, n.now_ms, 'set_lane_state', v_ord
      from (select ff__now_ms()) n(now_ms)
    on conflict do nothing;
    if found then
        outcome := 'created';
    else
        select l.state, l.last_event_ord into previous_state, v_last
          from ff_lane_registry l where l.lane_id = p_lane_id for update;
        outcome := case when previous_state = p_state then 'unchanged' else 'changed' end;
        v_ord := greatest(v_ord, v_last);
    end if;
    if outcome = 'unchanged' then
        return;
    end if;
    v_now := ff__now_ms();
    if outcome = 'changed' then
        update ff_lane_registry l
           set state = p_state, state_reason = p_reason, state_changed_at_ms = v_now, last_event_ord = v_ord
         where l.lane_id = p_lane_id;
        if p_state in ('active', 'draining') then
            perform ff__notify_lane(p_lane_id);
        end if;
    end if;
    perform ff__emit_other(ff__prepare_event('operator', 'lane_state_changed'), 'operator', 'lane_state_changed', v_now,
                           v_ord, p_reason, jsonb_build_object('previous_state', previous_state, 'state', p_state),
                           p_lane_id => p_lane_id);
end
$$;

comment on function ff_set_lane_state(text, text, text) is
$$Opens, pauses, drains or disables a lane. active: the lane accepts submissions and claims; paused: only submissions;
draining: only claims; disabled: neither. Live leases are not affected. An unknown lane is created in that state.
Applies to every call that starts after this one has committed.

Outcomes: outcome = created | changed | unchanged
Outcomes: previous_state = active | paused | draining | disabled
Outcomes: state = active | paused | draining | disabled
Nullable: previous_state
Errors: invalid_input, invalid_lane_id$$;
-- grant: ff_operator, ff_admin
