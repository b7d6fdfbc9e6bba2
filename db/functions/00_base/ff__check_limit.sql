-- A page size: 0 to p_max. Never clamped, so that a short page means the end. Errors: invalid_input.
create or replace function ff__check_limit(p_value int, p_max int default 1000) returns void
language plpgsql stable
as $$
begin
    if p_value is null then
        perform ff__invalid('p_limit', 'must not be null');
    elsif p_value not between 0 and p_max then
        perform ff__invalid('p_limit', format('must be between 0 and %s', p_max), jsonb_build_object('value', p_value));
    end if;
end
$$;
