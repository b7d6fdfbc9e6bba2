-- A text argument that is bounded in characters: present, p_min to p_max of them. Errors: invalid_input.
create or replace function ff__check_chars(p_arg text, p_value text, p_min int, p_max int) returns void
language plpgsql stable
as $$
begin
    if p_value is null then
        perform ff__invalid(p_arg, 'must not be null');
    elsif length(p_value) not between p_min and p_max then
        perform ff__invalid(p_arg, format('must have %s to %s characters', p_min, p_max),
                            jsonb_build_object('characters', length(p_value)));
    end if;
end
$$;
