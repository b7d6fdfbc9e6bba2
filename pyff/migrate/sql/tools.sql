-- Procedures that exist only while functions are being applied: created and dropped in one transaction.
-- An object that PostgreSQL can replace is replaced in place, without an effect on sessions that are calling it; any
-- other object is dropped first.

-- The schema of an object, by its name: functions other than helpers (ff__) and views called ff_v_ are in the schema of
-- the callers. DbTree writes the same schemas into the files.
create function pyff__home(p_class regclass, p_name text) returns regnamespace language sql stable as $pyff$
    select quote_ident(current_setting(case
        when p_class = 'pg_proc'::regclass and p_name not like 'ff\_\_%' then 'pyff.schema'
        when p_class = 'pg_class'::regclass and p_name like 'ff\_v\_%' then 'pyff.schema'
        else 'pyff.private_schema' end))::regnamespace
$pyff$;

-- Drops a routine or view, after the ff_v_ views built on it. If other objects depend on it, the drop fails and names
-- them: they belong to the user.
create procedure pyff__drop(p_class regclass, p_object oid) language plpgsql as $pyff$
declare
    v_view   oid;
begin
    for v_view in
        select distinct c.oid
          from pg_depend d
          join pg_rewrite r on r.oid = d.objid
          join pg_class c on c.oid = r.ev_class
         where d.classid = 'pg_rewrite'::regclass
           and d.refclassid = p_class and d.refobjid = p_object
           and c.oid <> p_object
           and c.relnamespace = pyff__home('pg_class', c.relname) and c.relname like 'ff\_v\_%'
    loop
        call pyff__drop('pg_class', v_view);
    end loop;
    if p_class = 'pg_proc'::regclass then
        execute format('drop routine %s', p_object::regprocedure);
    elsif exists (select from pg_class where oid = p_object) then  -- not gone with a view it is built on
        execute format('drop view %s', p_object::regclass);
    end if;
end
$pyff$;

-- Runs the file that defines p_name, so that afterwards exactly one object has that name. Bodies are checked
-- later, by pyff__validate: they may call what comes in a later file.
create procedure pyff__apply(p_name text, p_file text) language plpgsql as $pyff$
declare
    v_home   regnamespace := pyff__home('pg_proc', p_name);
    v_shown  regnamespace := pyff__home('pg_class', p_name);
    v_before jsonb := (select coalesce(jsonb_object_agg(oid, xmin), '{}')
                         from pg_proc where pronamespace = v_home and proname = p_name);
    v_old    record;
begin
    perform set_config('check_function_bodies', 'off', true);
    begin
        execute p_file;
    exception when invalid_function_definition or invalid_table_definition or wrong_object_type then
        for v_old in
            select 'pg_proc'::regclass as class, oid
              from pg_proc where pronamespace = v_home and proname = p_name
            union all
            select 'pg_class', oid
              from pg_class where relnamespace = v_shown and relname = p_name and relkind = 'v'
        loop
            call pyff__drop(v_old.class, v_old.oid);
        end loop;
        execute p_file;
    end;
    -- A helper has no COMMENT of its own: the comment above it is one, so that \df+ reads as documentation.
    for v_old in
        select p.oid from pg_proc p
         where p.pronamespace = v_home and p.proname = p_name and p.proname like 'ff\_\_%'
           and v_before ->> p.oid::text is distinct from p.xmin::text
    loop
        execute format('comment on function %s is %L', v_old.oid::regprocedure, 'Internal. ' || regexp_replace(
            rtrim(coalesce(substring(p_file from '^\n*((?:--[^\n]*\n)+)'), ''), E'\n'), '^-- ?', '', 'gn'));
    end loop;
    -- A changed list of arguments makes a second function. CREATE OR REPLACE always writes a new row version,
    -- so the row that is still the same is the old one.
    for v_old in
        select oid from pg_proc
         where pronamespace = v_home and proname = p_name and v_before ->> oid::text = xmin::text
    loop
        call pyff__drop('pg_proc', v_old.oid);
    end loop;
    if (select count(*)
          from (select from pg_proc where pronamespace = v_home and proname = p_name
                union all
                select from pg_class where relnamespace = v_shown and relname = p_name and relkind = 'v') f
       ) <> 1
    then
        raise exception using errcode = 'invalid_object_definition',
            message = format('its file must create exactly one function or view called %s', p_name);
    end if;
end
$pyff$;

-- Drops every ff_ routine and ff_v_ view that p_keep does not name, apart from routines that a table's columns,
-- constraints or triggers call.
create procedure pyff__prune(p_keep text[]) language plpgsql as $pyff$
declare
    v_views    text := (select string_agg(oid::regclass::text, ', ')
                          from pg_class
                         where relnamespace = pyff__home('pg_class', relname) and relkind = 'v'
                           and relname like 'ff\_v\_%' and relname <> all (p_keep));
    v_routines text := (select string_agg(oid::regprocedure::text, ', ')
                          from pg_proc p
                         where pronamespace = pyff__home('pg_proc', proname)
                           and proname like 'ff\_%' and proname <> all (p_keep)
                           and not exists (select from pg_depend d
                                            where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid
                                              and d.classid in ('pg_attrdef'::regclass, 'pg_constraint'::regclass,
                                                                'pg_trigger'::regclass)));
begin
    if v_views is not null then
        execute 'drop view ' || v_views;
    end if;
    if v_routines is not null then
        execute 'drop routine ' || v_routines;
    end if;
end
$pyff$;

-- Checks the bodies of all functions called p_name, as creating them would have done.
create procedure pyff__validate(p_name text) language plpgsql as $pyff$
begin
    perform set_config('check_function_bodies', 'on', true);
    perform case l.lanname when 'sql' then fmgr_sql_validator(p.oid) else plpgsql_validator(p.oid) end
       from pg_proc p
       join pg_language l on l.oid = p.prolang and l.lanname in ('sql', 'plpgsql')
      where p.pronamespace = pyff__home('pg_proc', p_name) and p.proname = p_name;
end
$pyff$;
