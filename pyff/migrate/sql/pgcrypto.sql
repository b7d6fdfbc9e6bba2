do $pyff$
begin
    if exists (select from pg_extension where extname = 'pgcrypto') then
        return;
    end if;
    execute format('create extension pgcrypto schema %I', current_setting('pyff.schema'));
exception
    when duplicate_object or unique_violation then
        null;  -- another session was faster
    when insufficient_privilege then
        raise exception using errcode = 'insufficient_privilege',
            message = format('the extension pgcrypto is missing and %I may not create it', current_user),
            hint = format('a superuser runs this once in database %I: create extension pgcrypto',
                          current_database());
    when undefined_file or feature_not_supported then
        raise exception using errcode = 'feature_not_supported',
            message = 'this server does not offer the extension pgcrypto',
            hint = 'install PostgreSQL''s contrib modules on the server';
end
$pyff$;
