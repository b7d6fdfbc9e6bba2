-- As much work ahead as the limit has.
select count(*) from ff_create_executions('bench', array_fill('\x0102030405060708'::bytea, array[5000]));
