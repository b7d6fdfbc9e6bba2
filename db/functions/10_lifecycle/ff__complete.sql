-- Success, by the lease holder or in its place (p_override). Returns when the execution ended, and whether this was a
-- replay of the call that ended it.
create or replace function ff__complete(
    p_fence ff_fence,
    p_result bytea,
    p_result_encoding text,
    p_override boolean default false,
    out terminal_at_ms bigint,
    out replayed boolean
)
language plpgsql volatile
as $$
declare
    e ff_exec;
begin
    if p_result_encoding is not null then
        perform ff__check_text('p_result_encoding', p_result_encoding, 0, 64);
    end if;
    if p_override then
        e := ff__override(p_fence.wire_id, p_fence.attempt_index, 'complete');
    else
        e := ff__fence(p_fence, 'complete');
    end if;
    replayed := e.execution_id is null;
    if replayed then
        terminal_at_ms := (ff__recorded_release(p_fence, 'complete')).ended_at_ms;
        return;
    end if;
    terminal_at_ms := e.now_ms;
    e := ff__end_attempt(e, case when p_override then 'override' else 'complete' end, 'ended_success', 'success',
                         case when p_override then 'override' else 'complete' end,
                         p_result => p_result, p_result_encoding => p_result_encoding);
    e := ff__terminate(e, 'success');
end
$$;
