-- The id of a quota policy or budget, as the caller names it: 1 to 200 characters. Errors: invalid_input.
create or replace function ff__check_policy_id(p_arg text, p_value text) returns void
language plpgsql stable
as $$
begin
    perform ff__check_text(p_arg, p_value, 1, 800);
    if length(p_value) > 200 then
        perform ff__invalid(p_arg, 'must have at most 200 characters',
                            jsonb_build_object('characters', length(p_value)));
    end if;
end
$$;
