-- Creates the private schema if it is missing. Its comment names the schema of the callers: by it the two are found
-- again, and no other installation uses the same one.
do $pyff$
declare
    v_schema  text := current_setting('pyff.schema');
    v_private text := current_setting('pyff.private_schema');
    v_mark    text := format('@mark@', v_schema);
    v_comment text := obj_description(to_regnamespace(quote_ident(v_private)), 'pg_namespace');
    v_other   text := (select n.nspname from pg_namespace n
                        where obj_description(n.oid, 'pg_namespace') = v_mark and n.nspname <> v_private);
begin
    if v_private = v_schema then
        raise exception using errcode = 'invalid_schema_name',
            message = format('tables and helpers cannot live in schema %I, which is that of the callers', v_schema),
            hint = 'choose another one with --schema or --private-schema';
    end if;
    if v_other is not null then
        raise exception using errcode = 'object_not_in_prerequisite_state',
            message = format('the functions in schema %I have their tables in schema %I, not in %I',
                             v_schema, v_other, v_private),
            hint = format('leave --private-schema out, or name %I', v_other);
    end if;
    if v_comment <> v_mark then
        raise exception using errcode = 'object_not_in_prerequisite_state',
            message = format('schema %I is used for something else: its comment is "%s"', v_private, v_comment),
            hint = 'choose another one with --private-schema';
    end if;
    if to_regnamespace(quote_ident(v_private)) is null then
        execute format('create schema %I', v_private);
    end if;
    if v_comment is null then
        execute format('comment on schema %I is %L', v_private, v_mark);
    end if;
exception when insufficient_privilege then
    raise exception using errcode = 'insufficient_privilege',
        message = format('schema %I for tables and helpers is missing or not owned by %I, which may not create it',
                         v_private, current_user),
        hint = format('a superuser runs this once in database %I: create schema %I authorization %I',
                      current_database(), v_private, current_user);
end
$pyff$;
