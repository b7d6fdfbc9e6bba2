create or replace function ff_observe_signals(
    p_handle text, p_suspension_id uuid default null, p_matched_only boolean default false
) returns table (
    signal_id uuid, signal_name text, signal_category text, source_type text, source_identity text, correlation_id text,
    accepted_at_ms bigint, payload bytea, payload_encoding text, waitpoint_id uuid, waitpoint_key text, matched boolean,
    consumed boolean, suspension_id uuid
)
language plpgsql stable security definer
as $$
declare
    v_fence ff_fence := ff__decode_handle(p_handle);
    v_id uuid;
begin
    if p_matched_only is null then
        perform ff__invalid('p_matched_only', 'must not be null');
    end if;
    select s.suspension_id into v_id
      from ff_execution c
      join ff_suspension s on s.execution_id = c.execution_id and s.attempt_index <= c.attempt_index
     where c.execution_id = v_fence.execution_id and c.attempt_index = v_fence.attempt_index
       and c.attempt_id = v_fence.attempt_id and (p_suspension_id is null or s.suspension_id = p_suspension_id)
       -- Earlier attempt: only if no lease granted after the suspension was ended by its own holder, which has seen the
       -- signals. Compares epochs, not times: the clock may step back.
       and (s.attempt_index = c.attempt_index
            or not s.forgotten
               and not exists (
                       select from ff_attempt_past b
                        where b.execution_id = c.execution_id and b.attempt_index >= s.attempt_index
                          and b.release_op in ('complete', 'fail', 'cancel')
                          and (b.lease_epoch > s.lease_epoch or s.close_reason = 'already_satisfied')))
     order by s.lease_epoch desc, s.suspension_no desc limit 1;
    return query
        select g.signal_id, g.signal_name, g.signal_category, g.source_type, g.source_identity, g.correlation_id,
               g.accepted_at_ms, g.payload, g.payload_encoding, g.waitpoint_id, w.waitpoint_key, g.matched,
               g.consumed_by is not null, g.suspension_id
          from ff_signal g join ff_waitpoint w on w.waitpoint_id = g.waitpoint_id
         where g.suspension_id = v_id and (g.matched or not p_matched_only)
         order by g.seq;
end
$$;

comment on function ff_observe_signals(text, uuid, boolean) is
$$Signals of a suspension of the handle's attempt, in order of arrival: of the latest suspension, or of p_suspension_id.
Accepts the handle that suspended and later handles of the same attempt. Also accepts handles of a later attempt, unless
a lease granted after the suspension was completed, failed or cancelled by its holder, or the steps were forgotten
(ff_forget_steps): signals that no run has seen are not lost after a crash, a timeout or a cancellation. Repeatable;
changes nothing. No rows: no signal was received, or the handle belongs to an older attempt.

Nullable: correlation_id, payload, payload_encoding, matched
Errors: invalid_input, invalid_handle$$;
-- grant: ff_worker, ff_admin
