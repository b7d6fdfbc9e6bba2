create or replace function ff_setting(p_name text, out value text)
language plpgsql stable security definer
as $$
begin
    if p_name is null then
        perform ff__invalid('p_name', 'must not be null');
    end if;
    select s.value into ff_setting.value
      from (select x.name, x.value from ff_setting x
            union all select 'schema_version', max(v.version)::text from ff_schema_version v
            union all select 'functions_sha256', y.functions_sha256 from ff_schema_state y
            union all select 'pyff_version', y.pyff_version from ff_schema_state y) s
     where s.name = p_name;
    if not found then
        perform ff__invalid('p_name', 'is not the name of a setting', jsonb_build_object('name', left(p_name, 64)));
    end if;
end
$$;

comment on function ff_setting(text) is
$$The value of one setting of the engine: notify, retention_ms, the limits max_*; and, as recorded by pyff migrate,
schema_version, functions_sha256 and pyff_version, with which a client checks that it matches the database.

Errors: invalid_input$$;
-- grant: ff_reader, ff_producer, ff_worker, ff_signaler, ff_operator, ff_admin
