-- Raises execution_not_found.
create or replace function ff__not_found(p_execution_id text) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('execution_not_found', format('no execution %s', p_execution_id),
                      jsonb_build_object('execution_id', p_execution_id));
end
$$;
