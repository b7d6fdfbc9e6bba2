-- Applies the grant lines of the files of functions and views, which `pyff migrate` passes as v_grants. Runs last in
-- every migration. PUBLIC gets nothing, tables stay with their owner, helpers (ff__) are granted to no role. Roles that
-- do not exist in this cluster are skipped. Grants are direct, not by membership, so that the owner of the schema needs
-- no rights on the roles.
do $grants$
declare
    v_grants constant jsonb := '@grants@';
    v_roles constant text[] := array(
        select r.rolname from pg_roles r
         where r.rolname in ('ff_reader', 'ff_producer', 'ff_worker', 'ff_signaler', 'ff_operator', 'ff_admin')
         order by r.rolname);
    v_all constant text := array_to_string('{public}' || v_roles, ', ');
    v_grantees text;
    v_object record;
begin
    execute format('revoke all on schema %I from %s', current_schema(), v_all);  -- the private one
    if v_roles <> '{}' then
        execute format('grant usage on schema %s to %s', '@extschema@', array_to_string(v_roles, ', '));
    end if;
    for v_object in
        select p.proname::text as name, format('routine %s', p.oid::regprocedure) as what, 'execute' as privilege
          from pg_proc p
         where p.pronamespace in ('@extschema@'::regnamespace, quote_ident(current_schema())::regnamespace)
           and p.proname like E'ff\\_%'
        union all
        select c.relname, format('table %s', c.oid::regclass), 'select'
          from pg_class c
         where c.relnamespace = '@extschema@'::regnamespace and c.relname like E'ff\\_v\\_%' and c.relkind = 'v'
    loop
        execute format('revoke all on %s from %s', v_object.what, v_all);
        select string_agg(g.role, ', ') into v_grantees
          from jsonb_array_elements_text(v_grants -> v_object.name) g(role)
         where g.role = any (v_roles);
        if v_grantees is not null then
            execute format('grant %s on %s to %s', v_object.privilege, v_object.what, v_grantees);
        end if;
    end loop;
end
$grants$;
