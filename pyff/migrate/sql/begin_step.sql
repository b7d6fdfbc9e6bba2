-- Settings of a transaction that changes the schema.
do $pyff$
begin
    perform set_config('lock_timeout', '10s', true);
    perform set_config(name, '0', true)
       from pg_settings
      where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout');
end
$pyff$;
