select execution_id from ff_create_execution(p_lane_id => 'bench', p_payload => '\x0102030405060708');
select handle from ff_claim(p_lane_id => 'bench', p_worker_id => 'w', p_worker_instance_id => 'w1') \gset
select outcome from ff_complete(p_handle => :handle);
