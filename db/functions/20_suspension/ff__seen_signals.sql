-- The signals of a suspension that count: matched, and neither consumed nor discarded.
create or replace function ff__seen_signals(p_suspension_id uuid) returns ff_seen_signal[]
language plpgsql stable
as $$
begin
    return array(select (s.signal_id, w.waitpoint_key, s.signal_name, s.source_type, s.source_identity)::ff_seen_signal
                   from ff_signal s join ff_waitpoint w on w.waitpoint_id = s.waitpoint_id
                  where s.suspension_id = p_suspension_id and s.matched and s.consumed_by is null and not s.discarded);
end
$$;
