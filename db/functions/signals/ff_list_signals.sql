create or replace function ff_list_signals(p_execution_id text, p_after bigint default 0, p_limit int default 100)
returns table (
    seq bigint, signal_id uuid, signal_name text, signal_category text, source_type text, source_identity text,
    correlation_id text, accepted_at_ms bigint, payload bytea, payload_encoding text, waitpoint_id uuid,
    waitpoint_key text, matched boolean, consumed boolean, suspension_id uuid, effect text, discarded boolean
)
language plpgsql stable security definer
as $$
declare
    v_id uuid := ff__execution_uuid(p_execution_id);
begin
    perform ff__check_limit(p_limit);
    if p_after is null then
        perform ff__invalid('p_after', 'must not be null');
    end if;
    return query
        select g.seq, g.signal_id, g.signal_name, g.signal_category, g.source_type, g.source_identity, g.correlation_id,
               g.accepted_at_ms, g.payload, g.payload_encoding, g.waitpoint_id, w.waitpoint_key, g.matched,
               g.consumed_by is not null, g.suspension_id, g.effect, g.discarded
          from ff_signal g join ff_waitpoint w on w.waitpoint_id = g.waitpoint_id
         where g.execution_id = v_id and g.seq > p_after
         order by g.seq limit p_limit;
end
$$;

comment on function ff_list_signals(text, bigint, int) is
$$All signals that an execution received, in order. p_after: the seq of the last one read.

Outcomes: effect = buffered_for_pending_waitpoint | appended_to_waitpoint | resume_condition_satisfied
Nullable: correlation_id, payload, payload_encoding, matched, suspension_id
Errors: invalid_input, invalid_execution_id$$;
-- grant: ff_operator, ff_admin
