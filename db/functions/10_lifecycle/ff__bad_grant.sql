-- Raises invalid_claim_grant; says nothing about the grant that exists.
create or replace function ff__bad_grant(p_execution_id text default null) returns void
language plpgsql stable
as $$
begin
    perform ff__raise('invalid_claim_grant', 'the grant does not allow this claim',
                      jsonb_strip_nulls(jsonb_build_object('execution_id', p_execution_id)));
end
$$;
