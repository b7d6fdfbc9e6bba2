-- Settings of a transaction that changes the schema. Functions pin this search_path ("set search_path from
-- current"), so it holds the install schema, pgcrypto's if that is another one, and pg_temp last.
do $pyff$
begin
    perform set_config('lock_timeout', '10s', true);
    perform set_config(name, '0', true)
       from pg_settings
      where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout');
    perform set_config('search_path', concat_ws(', ',
        quote_ident(current_schema()),
        (select quote_ident(n.nspname)
           from pg_extension e
           join pg_namespace n on n.oid = e.extnamespace
          where e.extname = 'pgcrypto' and n.nspname <> current_schema()),
        'pg_temp'), true);
end
$pyff$;
