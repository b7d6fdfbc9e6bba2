-- Refuses, before anything is touched, a server or a schema that pyff cannot be installed into.
do $pyff$
declare
    v_path   text := current_setting('search_path');
    v_first  text := trim(split_part(v_path, ',', 1));
    v_given  text := nullif(current_setting('pyff.schema'), '');
    v_schema text := coalesce(v_given, current_schema());
    v_other  name;
begin
    if current_setting('server_version_num')::int < 150000 then
        raise exception using errcode = 'feature_not_supported',
            message = format('PostgreSQL %s is too old: pyff needs 15 or newer',
                             current_setting('server_version'));
    end if;
    if to_regnamespace(quote_ident(v_given)) is null and v_given is not null then
        raise exception using errcode = 'invalid_schema_name',
            message = format('there is no schema %I to install into', v_given),
            hint = 'create it first; pyff creates no schema but its private one';
    end if;
    -- Otherwise a misspelt schema would put everything into the next one on the path.
    if v_given is null and v_first not in ('', '$user', '"$user"') and to_regnamespace(v_first) is null
       or v_schema is null then
        raise exception using errcode = 'invalid_schema_name',
            message = format('there is no schema to install into: search_path is %s',
                             coalesce(nullif(v_path, ''), 'empty')),
            hint = 'create the schema first, or correct search_path; pyff creates no schema but its private one';
    end if;
    if v_schema || current_setting('pyff.private_schema') ~ E'["$''\\\\@]' then  -- names are written into functions
        raise exception using errcode = 'invalid_schema_name',
            message = 'the name of a schema has a quote, a dollar sign, a backslash or an @',
            hint = 'choose another schema';
    end if;
    if not has_schema_privilege(v_schema, 'create') then
        raise exception using errcode = 'insufficient_privilege',
            message = format('%I may not create anything in schema %I', current_user, v_schema),
            hint = format('its owner runs: grant usage, create on schema %I to %I', v_schema, current_user);
    end if;
    select s.name into v_other
      from unnest(current_schemas(false)) with ordinality s (name, place)
     where exists (@installed@)
     order by s.place limit 1;
    if v_other <> v_schema and v_schema = current_schema() then
        raise exception using errcode = 'object_not_in_prerequisite_state',
            message = format('pyff is installed in schema %I: another installation in schema %I, which comes before it '
                             'in the search_path, would hide it', v_other, v_schema),
            hint = format('to upgrade it, pyff migrate --schema %1$I; to install a second one, leave %1$I '
                          'out of the search_path', v_other);
    end if;
end
$pyff$;
