-- 16 budgets that no run exhausts, an attempt per client under a lease that outlasts the run, and the rows of the limit.
create table bench_worker (id int primary key, handle text not null);
select count(*) from ff_create_executions('budget', array_fill(''::bytea, array[16]));
insert into bench_worker
select row_number() over () - 1, c.handle
  from ff_claim_many('budget', 'bench', 'bench-1', 16, p_lease_ttl_ms => 86400000) c;
select count(ff_create_budget('budget' || n, '{cents,tokens}', '{1000000000,1000000000}', '{0,0}'))
  from generate_series(0, 15) n;
create table bench_counter (id int primary key, v bigint not null)
    with (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
insert into bench_counter select n, 0 from generate_series(0, 15) n;
