-- Bytes that a caller wants stored: at most as many as the setting allows. p_what names them in the message. NULL passes.
-- A payload or result of an execution of up to 1024 bytes need not be checked: that is the least its setting can be.
-- Errors: payload_too_large (DETAIL.size, DETAIL.limit).
create or replace function ff__check_size(p_setting text, p_what text, p_bytes bytea, p_detail jsonb default '{}')
returns void
language plpgsql stable
as $$
declare
    v_limit int := ff__limit(p_setting);
begin
    if octet_length(p_bytes) > v_limit then
        perform ff__raise('payload_too_large',
                          format('the %s has %s bytes, %s are allowed', p_what, octet_length(p_bytes), v_limit),
                          jsonb_build_object('size', octet_length(p_bytes), 'limit', v_limit) || p_detail,
                          format('Store large data elsewhere and pass a reference, or raise the setting %s.', p_setting));
    end if;
end
$$;
