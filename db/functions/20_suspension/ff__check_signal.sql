-- The shape of a signal that somebody wants to deliver. Errors: invalid_input, invalid_signal_name, payload_too_large,
-- invalid_source_type.
create or replace function ff__check_signal(
    p_waitpoint_id uuid, p_signal_name text, p_payload bytea, p_source_type text, p_dedup_ttl_ms bigint,
    p_resume_delay_ms bigint, p_max_chars int
) returns void
language plpgsql stable
as $$
begin
    if p_waitpoint_id is null then
        perform ff__invalid('p_waitpoint_id', 'must not be null');
    elsif p_signal_name is null then
        perform ff__invalid('p_signal_name', 'must not be null');
    elsif p_signal_name like E'\\_\\_%' or not ff__is_name(p_signal_name, p_max_chars) then
        perform ff__raise('invalid_signal_name', 'not the name of a signal',
                          jsonb_build_object('signal_name', left(p_signal_name, 64)));
    end if;
    perform ff__check_size('max_payload_bytes', 'payload', p_payload);
    if p_source_type in ('engine', 'operator') then
        perform ff__raise('invalid_source_type', format('the source type %s is the engine''s own', p_source_type),
                          jsonb_build_object('source_type', p_source_type));
    elsif p_dedup_ttl_ms is null or p_dedup_ttl_ms not between 0 and 2592000000 then
        perform ff__invalid('p_dedup_ttl_ms', 'must be between 0 and 2592000000',
                            jsonb_build_object('value', p_dedup_ttl_ms));
    elsif p_resume_delay_ms not between 0 and 604800000 then
        perform ff__invalid('p_resume_delay_ms', 'must be between 0 and 604800000',
                            jsonb_build_object('value', p_resume_delay_ms));
    end if;
end
$$;
