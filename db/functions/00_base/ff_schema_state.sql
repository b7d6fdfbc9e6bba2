create or replace function ff_schema_state(out schema_version int, out functions_sha256 text, out pyff_version text)
language sql stable security definer
set search_path from current
as $$
    select (select max(v.version) from ff_schema_version v), s.functions_sha256, s.pyff_version
      from (values (true)) one(id)
      left join ff_schema_state s on s.id = one.id;
$$;

comment on function ff_schema_state() is
$$What is installed: the newest migration, the checksum of the functions, the pyff release they came with.
A client compares it with its own before it starts.

Nullable: schema_version, functions_sha256, pyff_version$$;
