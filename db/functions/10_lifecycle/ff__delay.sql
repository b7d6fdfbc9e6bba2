-- ff_delay and ff_delay_execution: the attempt pauses until a time; its clock stops, its retries are not touched.
create or replace function ff__delay(
    p_fence ff_fence,
    p_delay_until_ms bigint,
    p_delay_ms bigint,
    p_override boolean default false,
    out public_state text,
    out delay_until_ms bigint,
    out replayed boolean
)
language plpgsql volatile
as $$
declare
    v_detail jsonb;
    e ff_exec;
    a ff_ending;
begin
    if num_nonnulls(p_delay_until_ms, p_delay_ms) <> 1 then
        perform ff__invalid('p_delay_ms', 'or p_delay_until_ms must be given, and not both');
    end if;
    perform ff__check_time('p_delay_until_ms', p_delay_until_ms, -9223372036854775808);
    perform ff__check_time('p_delay_ms', p_delay_ms, p_from_ms => ff__now_ms());
    if p_override then
        e := ff__override(p_fence.wire_id, p_fence.attempt_index, 'delay');
    else
        e := ff__fence(p_fence, 'delay');
    end if;
    replayed := e.execution_id is null;
    if replayed then
        v_detail := (ff__recorded_release(p_fence, 'delay')).release_detail;
        public_state := v_detail ->> 'public_state';
        delay_until_ms := (v_detail ->> 'delay_until_ms')::bigint;
        return;
    end if;
    if e.flow_id is not null then
        perform ff__check_flow_open(e);
    end if;
    delay_until_ms := coalesce(p_delay_until_ms, ff__time_after(e.now_ms, p_delay_ms));
    public_state := case when delay_until_ms > e.now_ms then 'delayed' else 'resumable' end;
    delay_until_ms := case when delay_until_ms > e.now_ms then delay_until_ms end;
    a := ff__end_lease(e, case when p_override then 'override' else 'delay' end,
                       case when p_override then 'override' else 'delay' end, null,
                       jsonb_build_object('public_state', public_state, 'delay_until_ms', delay_until_ms));
    public_state := ff__requeue(e, a, 'attempt_interrupted', delay_until_ms, 'delayed');
    if e.flow_id is not null then
        public_state := ff__note_settled(e, public_state);
    end if;
end
$$;
