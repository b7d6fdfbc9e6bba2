-- A text argument: present, between p_min and p_max bytes, no control characters. Errors: invalid_input.
create or replace function ff__check_text(p_arg text, p_value text, p_min int, p_max int) returns void
language plpgsql stable
as $$
begin
    if p_value is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif octet_length(p_value) not between p_min and p_max then
        perform ff__invalid(p_arg, format('must have %s to %s bytes', p_min, p_max),
                            jsonb_build_object('bytes', octet_length(p_value)));
    elsif p_value ~ E'[\\x01-\\x1f\\x7f]' then
        perform ff__invalid(p_arg, 'must not contain control characters');
    end if;
end
$$;
