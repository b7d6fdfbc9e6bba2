select count(*) from ff_create_executions(p_lane_id => 'bench', p_payloads => array_fill('\x0102030405060708'::bytea, array[100]));
select array_agg(handle)::text as handles from ff_claim_many(p_lane_id => 'bench', p_worker_id => 'w', p_worker_instance_id => 'w1', p_limit => 100) \gset
select count(*) from ff_complete_many(p_handles => :handles::text::text[]);
