-- 100 attempts under leases that outlast the run.
create table bench_stream (id int primary key, handle text not null);
select count(*) from ff_create_executions('stream', array_fill(''::bytea, array[100]));
insert into bench_stream
select row_number() over (), c.handle
  from ff_claim_many('stream', 'bench', 'bench-1', 100, p_lease_ttl_ms => 86400000) c;
