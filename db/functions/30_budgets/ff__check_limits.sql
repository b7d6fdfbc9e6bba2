-- The limits of one dimension: each 0 or more, the soft one not above the hard one; 0 and NULL mean none. p_plural: 's'
-- where the arguments are lists. Errors: invalid_input.
create or replace function ff__check_limits(p_plural text, p_dimension text, p_hard bigint, p_soft bigint) returns void
language plpgsql stable
as $$
begin
    if p_dimension is null or octet_length(p_dimension) not between 1 and 128 then
        perform ff__invalid('p_dimension' || p_plural, 'must have 1 to 128 bytes',
                            jsonb_build_object('dimension', left(p_dimension, 128)));
    elsif p_hard < 0 or p_soft < 0 then
        perform ff__invalid(case when p_hard < 0 then 'p_hard_limit' else 'p_soft_limit' end || p_plural,
                            'must be 0 or more', jsonb_build_object('dimension', p_dimension));
    elsif p_hard > 0 and p_soft > p_hard then
        perform ff__invalid('p_soft_limit' || p_plural, 'must not be above the hard limit',
                            jsonb_build_object('dimension', p_dimension));
    end if;
end
$$;
