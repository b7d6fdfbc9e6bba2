select ff_report_usage((select handle from bench_worker where id = :client_id % 16), 'budget0', '{"tokens": 1}');
