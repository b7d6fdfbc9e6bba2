select execution_id as eid, handle from ff_claim(p_lane_id => 'waits', p_worker_id => 'w', p_worker_instance_id => 'w1') \gset
select waitpoint_id as wid, waitpoint_token as token from ff_suspend(p_handle => :handle, p_condition => '{"kind": "single", "waitpoint_key": "a", "matcher": {"by_name": "go"}}') \gset
select outcome from ff_deliver_signal(p_execution_id => :eid, p_waitpoint_id => :wid, p_waitpoint_token => :token, p_signal_name => 'go', p_payload => '\x0102030405060708');
