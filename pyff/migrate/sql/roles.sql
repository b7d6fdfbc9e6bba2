-- Roles belong to the whole cluster: a migration of another database may be creating them at this moment.
do $pyff$
declare
    v_role name;
begin
    foreach v_role in array
        array['ff_reader', 'ff_producer', 'ff_worker', 'ff_signaler', 'ff_operator', 'ff_admin']
    loop
        continue when exists (select from pg_roles where rolname = v_role);
        begin
            execute format('create role %I nologin', v_role);
        exception when duplicate_object or unique_violation then
            null;
        end;
    end loop;
exception when insufficient_privilege then
    raise exception using errcode = 'insufficient_privilege',
        message = format('role %I is missing and %I may not create roles', v_role, current_user),
        hint = 'migrate once as a role with CREATEROLE, or with --no-roles (they then get no grants)';
end
$pyff$;
