-- Raises waitpoint_limit_exceeded.
create or replace function ff__waitpoint_limit(e ff_exec) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('waitpoint_limit_exceeded',
                      format('execution %s has as many open waitpoints as it may',
                             ff__wire_id(e.partition_key, e.execution_id)),
                      jsonb_build_object('execution_id', ff__wire_id(e.partition_key, e.execution_id),
                                         'limit', ff__limit('max_open_waitpoints')));
end
$$;
