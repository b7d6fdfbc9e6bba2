-- Which frames a reader wants: all, or none of those that time takes away. Errors: invalid_input.
create or replace function ff__check_visibility(p_visibility text) returns void
language plpgsql stable
as $$
begin
    if p_visibility is null or p_visibility not in ('all', 'exclude_best_effort') then
        perform ff__invalid('p_visibility', 'must be all or exclude_best_effort');
    end if;
end
$$;
