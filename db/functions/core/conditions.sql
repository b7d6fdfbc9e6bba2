-- Whether a leaf or count node of a condition accepts a signal of this name on this waitpoint. Pure.
create or replace function ff__accepts(p_condition jsonb, p_key text, p_name text) returns boolean
language plpgsql immutable parallel safe
as $$
declare
    v_member jsonb;
begin
    case p_condition ->> 'kind'
        when 'single' then
            return p_condition ->> 'waitpoint_key' = p_key and ff__matches(p_condition -> 'matcher', p_name);
        when 'count' then
            return p_condition -> 'waitpoints' ? p_key and ff__matches(p_condition -> 'matcher', p_name);
        when 'all_of' then
            for v_member in select x.node from jsonb_array_elements(p_condition -> 'members') x(node) loop
                if ff__accepts(v_member, p_key, p_name) then
                    return true;
                end if;
            end loop;
        else
            null;
    end case;
    return false;
end
$$;

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
        g.execution_id, g.signal_id, g.seq, g.waitpoint_id, g.suspension_id, g.accepted_at_ms, g.dedup_until_ms,
        g.matched, g.signal_name, g.signal_category, g.source_type, g.source_identity, g.effect, g.correlation_id,
        g.payload_encoding, g.idempotency_key, g.content_hash, g.payload);
    update ff_waitpoint w set
        signal_count = w.signal_count + 1, matched_count = w.matched_count + coalesce(g.matched, false)::int,
        last_signal_at_ms = g.accepted_at_ms
     where w.waitpoint_id = g.waitpoint_id;
end
$$;

-- The identity of a signal for deduplication: name, waitpoint and payload, length-prefixed; -1 stands for no payload.
create or replace function ff__content_hash(p_name text, p_waitpoint_id uuid, p_payload bytea) returns bytea
language sql immutable parallel safe
as $$
    select sha256(int4send(octet_length(p_name)) || convert_to(p_name, 'UTF8') || uuid_send(p_waitpoint_id)
                  || int4send(coalesce(octet_length(p_payload), -1)) || coalesce(p_payload, ''))
$$;

-- Whether a matcher accepts a signal name. No matcher, or "wildcard": any. Pure.
create or replace function ff__matches(p_matcher jsonb, p_name text) returns boolean
language plpgsql immutable parallel safe
as $$
begin
    return case when p_matcher is null or p_matcher = '"wildcard"' then true
                when p_matcher ? 'by_name' then p_matcher ->> 'by_name' = p_name collate "C"
                else p_matcher -> 'one_of' ? p_name end;
end
$$;

-- The next signal number of a locked execution.
create or replace function ff__next_signal_no(p_execution_id uuid) returns bigint
language plpgsql stable
as $$
begin
    return 1 + coalesce((select max(s.seq) from ff_signal s where s.execution_id = p_execution_id), 0);
end
$$;

-- Whether these signals satisfy a condition. Each count node counts independently; an empty source identity is not
-- counted as a source. Pure.
create or replace function ff__satisfied(p_condition jsonb, p_signals ff_seen_signal[]) returns boolean
language plpgsql immutable parallel safe
as $$
declare
    v_member jsonb;
begin
    case p_condition ->> 'kind'
        when 'single' then
            return exists (select from unnest(p_signals) s
                            where s.waitpoint_key = p_condition ->> 'waitpoint_key'
                              and ff__matches(p_condition -> 'matcher', s.signal_name));
        when 'count' then
            return (p_condition -> 'n')::int <= (
                select case p_condition ->> 'count_kind'
                           when 'distinct_waitpoints' then count(distinct s.waitpoint_key)
                           when 'distinct_signals' then count(distinct s.signal_id)
                           else count(distinct (s.source_type, s.source_identity))
                                    filter (where s.source_identity <> '')
                       end
                  from unnest(p_signals) s
                 where p_condition -> 'waitpoints' ? s.waitpoint_key
                   and ff__matches(p_condition -> 'matcher', s.signal_name));
        when 'all_of' then
            for v_member in select x.node from jsonb_array_elements(p_condition -> 'members') x(node) loop
                if not ff__satisfied(v_member, p_signals) then
                    return false;
                end if;
            end loop;
            return true;
        else
            return false;
    end case;
end
$$;

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
