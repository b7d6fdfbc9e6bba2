-- Who asks for a typed worker verb: true for an operator's override, which needs no fence.
-- An override needs the rights of ff_operator, of ff_admin or of the owner of these functions; superusers have them, and
-- without roles the owner is the only operator. current_user is the owner here, so the caller is the role that is set, else
-- the login, also when it calls through functions that run with the rights of another role.
-- Errors: invalid_input, override_not_allowed.
create or replace function ff__check_source(
    p_execution_id text, p_source text, p_lease_id uuid, p_lease_epoch bigint, p_attempt_id uuid
) returns boolean
language plpgsql stable
as $$
declare
    v_caller text;
begin
    if p_source is null or p_source not in ('lease_holder', 'operator_override') then
        perform ff__invalid('p_source', 'must be lease_holder or operator_override');
    elsif p_source = 'lease_holder' or num_nonnulls(p_lease_id, p_lease_epoch, p_attempt_id) > 0 then
        return false;
    end if;
    v_caller := coalesce(nullif(current_setting('role'), 'none'), session_user);
    if not exists (select from pg_roles c join pg_roles r on pg_has_role(c.oid, r.oid, 'usage')
                    where c.rolname = v_caller and r.rolname in ('ff_operator', 'ff_admin', current_user)) then
        perform ff__raise('override_not_allowed', format('role %s may not act in place of the lease holder', v_caller),
                          jsonb_build_object('execution_id', p_execution_id));
    end if;
    return true;
end
$$;
