-- The one place that decides what a migration works with and what entry points pin (planner.sql): the private schema,
-- pgcrypto's if that is another one, and pg_temp last. For this transaction.
do $pyff$
begin
    perform set_config('search_path', concat_ws(', ',
        quote_ident(current_setting('pyff.private_schema')),
        (select quote_ident(n.nspname)
           from pg_extension e
           join pg_namespace n on n.oid = e.extnamespace
          where e.extname = 'pgcrypto' and n.nspname <> current_setting('pyff.private_schema')),
        'pg_temp'), true);
end
$pyff$;
