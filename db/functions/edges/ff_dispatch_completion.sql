-- Locks: the flow (waits for it), children and siblings (skip locked). Repeatable.
create or replace function ff_dispatch_completion(
    p_event_id bigint,
    p_max_edges int default 1000,
    out outcome text,
    out edges_resolved int,
    out children_released int,
    out children_skipped int,
    out siblings_cancelled int,
    out depth int
)
language plpgsql volatile security definer
as $$
declare
    v_flow uuid;
    r ff_dispatched := (0, 0, 0, 0, 0, 0, false)::ff_dispatched;
begin
    if p_event_id is null then
        perform ff__invalid('p_event_id', 'must not be null');
    elsif p_max_edges is null or p_max_edges not between 0 and 100000 then
        perform ff__invalid('p_max_edges', 'must be between 0 and 100000', jsonb_build_object('value', p_max_edges));
    end if;
    outcome := 'noop';
    select q.flow_id into v_flow from ff_flow_dispatch q where q.event_id = p_event_id;
    if v_flow is not null then
        if (ff__open_flow(v_flow)).flow_id is null then
            delete from ff_flow_dispatch q where q.event_id = p_event_id;
        else
            -- The caller named this row: it is due even if it was delayed.
            update ff_flow_dispatch q set next_dispatch_at_ms = 0 where q.event_id = p_event_id;
            if found then
                r := ff__dispatch_flow(v_flow, p_max_edges);
                outcome := case when r.rows_left then 'partial' else 'advanced' end;
            end if;
        end if;
    end if;
    edges_resolved := r.edges_resolved;
    children_released := r.children_released;
    children_skipped := r.children_skipped;
    siblings_cancelled := r.siblings_cancelled;
    depth := r.depth;
end
$$;

comment on function ff_dispatch_completion(bigint, int) is
$$Applies the end of a flow member to the members that wait for it, together with other ends in the same flow that are
new or due. Normally the call that ended the member has already done this. p_event_id: id of its completion event.
partial: work remains because a child was locked by another transaction or the limit of one call was reached; call
again.

Outcomes: outcome = noop | advanced | partial
Errors: invalid_input$$;
-- grant: ff_producer, ff_operator, ff_admin
