-- Stores a signal and counts it on its waitpoint.
create or replace function ff__add_signal(g ff_signal) returns void
language plpgsql volatile
as $$
begin
    insert into ff_signal (
        execution_id, signal_id, seq, waitpoint_id, suspension_id, accepted_at_ms, dedup_until_ms, matched, signal_name,
        signal_category, source_type, source_identity, effect, correlation_id, payload_encoding, idempotency_key,
        content_hash, payload)
    values (
        g.execution_id, g.signal_id, g.seq, g.waitpoint_id, g.suspension_id, g.accepted_at_ms, g.dedup_until_ms, g.matched,
        g.signal_name, g.signal_category, g.source_type, g.source_identity, g.effect, g.correlation_id,
        g.payload_encoding, g.idempotency_key, g.content_hash, g.payload);
    update ff_waitpoint w set
        signal_count = w.signal_count + 1, matched_count = w.matched_count + coalesce(g.matched, false)::int,
        last_signal_at_ms = g.accepted_at_ms
     where w.waitpoint_id = g.waitpoint_id;
end
$$;
