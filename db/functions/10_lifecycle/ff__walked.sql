-- How many entries of the ready and due indexes this transaction has read so far.
create or replace function ff__walked() returns bigint
language sql volatile
as $$
    select pg_stat_get_xact_tuples_returned('ff_exec_core_ready'::regclass)
         + pg_stat_get_xact_tuples_returned('ff_exec_core_due'::regclass)
$$;
