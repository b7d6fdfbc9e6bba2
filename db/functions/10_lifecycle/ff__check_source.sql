-- Who asks for a typed worker verb: true for an operator's override, which goes without a fence.
-- Errors: invalid_input.
create or replace function ff__check_source(
    p_source text, p_lease_id uuid, p_lease_epoch bigint, p_attempt_id uuid
) returns boolean
language plpgsql stable
as $$
begin
    if p_source is null or p_source not in ('lease_holder', 'operator_override') then
        perform ff__invalid('p_source', 'must be lease_holder or operator_override');
    end if;
    return p_source = 'operator_override' and num_nonnulls(p_lease_id, p_lease_epoch, p_attempt_id) = 0;
end
$$;
