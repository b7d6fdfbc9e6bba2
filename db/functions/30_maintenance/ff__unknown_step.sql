-- Refuses a name that is no step of maintenance. Errors: invalid_input.
create or replace function ff__unknown_step(p_arg text, p_name text) returns void
language plpgsql stable
as $$
begin
    perform ff__invalid(p_arg, 'names no step of maintenance',
                        jsonb_build_object(
                            'name', left(p_name, 64),
                            'steps', (select jsonb_agg(r.name order by r.run_order) from ff_reconciler r)));
end
$$;
