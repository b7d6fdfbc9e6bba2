-- What a frame may look like. Reads the limit of payloads, no other row.
-- Errors: invalid_input, invalid_frame_type, invalid_stream_mode, payload_too_large.
create or replace function ff__check_frame(
    p_payload bytea, p_frame_type text, p_mode text, p_encoding text, p_correlation_id text, p_frame_key text,
    p_maxlen int, p_ttl_ms int, p_maxlen_floor int, p_maxlen_ceiling int, p_ema_alpha float8
) returns void
language plpgsql stable
as $$
begin
    if p_frame_type is null or length(p_frame_type) > 64 or p_frame_type !~ '^[a-z0-9_.:-]{1,64}$' then
        perform ff__raise('invalid_frame_type',
                          'a frame type is 1 to 64 characters of a-z, 0-9, dot, colon, dash and underscore',
                          jsonb_build_object('frame_type', left(p_frame_type, 64)));
    elsif p_mode is null or p_mode not in ('durable', 'durable_summary', 'best_effort_live') then
        perform ff__raise('invalid_stream_mode', 'the mode is none of durable, durable_summary, best_effort_live',
                          jsonb_build_object('mode', left(p_mode, 64)));
    elsif p_payload is null then
        perform ff__invalid('p_payload', 'must not be null');
    end if;
    perform ff__check_size('max_payload_bytes', 'payload', p_payload);
    if p_maxlen not between 1 and 1000000 then
        perform ff__invalid('p_maxlen', 'must be between 1 and 1000000', jsonb_build_object('value', p_maxlen));
    elsif p_ttl_ms is null or p_ttl_ms not between 100 and 600000 then
        perform ff__invalid('p_ttl_ms', 'must be between 100 and 600000', jsonb_build_object('value', p_ttl_ms));
    elsif p_maxlen_ceiling is null or p_maxlen_ceiling not between 1 and 100000 then
        perform ff__invalid('p_maxlen_ceiling', 'must be between 1 and 100000',
                            jsonb_build_object('value', p_maxlen_ceiling));
    elsif p_maxlen_floor is null or p_maxlen_floor not between 1 and p_maxlen_ceiling then
        perform ff__invalid('p_maxlen_floor', 'must be between 1 and p_maxlen_ceiling',
                            jsonb_build_object('value', p_maxlen_floor));
    elsif p_ema_alpha is null or not (p_ema_alpha > 0 and p_ema_alpha <= 1) then
        perform ff__invalid('p_ema_alpha', 'must be more than 0 and at most 1');
    elsif length(p_frame_key) > 256 then
        perform ff__invalid('p_frame_key', 'must have at most 256 characters');
    elsif length(p_correlation_id) > 256 then
        perform ff__invalid('p_correlation_id', 'must have at most 256 characters');
    end if;
    perform ff__check_text('p_encoding', p_encoding, 0, 64);
end
$$;
