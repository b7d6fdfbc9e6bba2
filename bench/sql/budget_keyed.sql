\set key random(1, 9000000000000000)
select ff_report_usage((select handle from bench_worker where id = :client_id % 16), 'budget' || :client_id % 16, '{"tokens": 1, "cents": 1}', :client_id || '-' || :key);
