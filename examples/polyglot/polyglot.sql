-- An invoice that waits for its payment, in psql. See README.md for how to run it.
\set ON_ERROR_STOP on
\pset format unaligned
\pset tuples_only on
\set QUIET on
\set lane invoices-psql

-- Submit work. The key makes a repetition harmless.
select execution_id, outcome, public_state
  from ff_create_execution(p_lane_id => :'lane', p_payload => 'invoice 42', p_idempotency_key => :'lane' || '/42') \gset
\echo create: :outcome :public_state
select outcome, (execution_id = :'execution_id')::text as same
  from ff_create_execution(p_lane_id => :'lane', p_payload => 'invoice 42', p_idempotency_key => :'lane' || '/42') \gset
\echo create again: :outcome :same

-- A worker claims it under a lease, and renews the lease while it works. An instance is one process; use a
-- unique name for each.
select 'booker-' || pg_backend_pid() as instance \gset
select handle as first, handle_kind, attempt_index, lease_epoch, lease_expires_at_ms, convert_from(payload, 'UTF8') as payload
  from ff_claim(p_lane_id => :'lane', p_worker_id => 'booker', p_worker_instance_id => :'instance') \gset
\echo claim: :handle_kind :attempt_index :lease_epoch :payload
select 'renew: ' || lease_epoch || ' ' || (lease_expires_at_ms >= :lease_expires_at_ms)::text
  from ff_renew(p_handle => :'first');

-- Suspend: this releases the lease and returns a token for the sender of the signal.
select outcome, waitpoint_id, waitpoint_token
  from ff_suspend(p_handle => :'first', p_reason_code => 'waiting_for_callback', p_timeout_ms => 86400000,
                  p_condition => '{"kind": "single", "waitpoint_key": "payment", "matcher": {"by_name": "paid"}}') \gset
\echo suspend: :outcome
select 'claim: ' || coalesce(max(handle_kind), 'nothing')
  from ff_claim(p_lane_id => :'lane', p_worker_id => 'booker', p_worker_instance_id => :'instance');

-- The outsider has the token, and a login that may only deliver signals. (From psql 16 on, \bind keeps it
-- out of the text of the statement, which the server may log.)
\c :sender
\set ON_ERROR_STOP off
select * from ff_list_executions();
\echo outsider looks: :LAST_ERROR_SQLSTATE
select * from ff_deliver_signal(:'execution_id', :'waitpoint_id', 'key-1:forged', 'paid');
\echo outsider forges: :LAST_ERROR_SQLSTATE
\set ON_ERROR_STOP on
select 'outsider signals: ' || outcome || ' ' || public_state
  from ff_deliver_signal(:'execution_id', :'waitpoint_id', :'waitpoint_token', 'paid', p_payload => '100 euros');

-- Any worker continues the same attempt, under a new lease.
\c :worker
select handle as second, handle_kind, attempt_index, lease_epoch
  from ff_claim(p_lane_id => :'lane', p_worker_id => 'booker', p_worker_instance_id => :'instance') \gset
\echo claim: :handle_kind :attempt_index :lease_epoch
select 'signal: ' || signal_name || ' ' || convert_from(payload, 'UTF8') from ff_observe_signals(p_handle => :'second');

-- The first handle is no longer valid. Every error has a SQLSTATE, a json DETAIL and a HINT.
\set ON_ERROR_STOP off
select * from ff_renew(p_handle => :'first');
\echo renew with the old handle: :LAST_ERROR_SQLSTATE
\set ON_ERROR_STOP on

select 'complete: ' || public_state || ' ' || replayed::text from ff_complete(p_handle => :'second', p_result => 'booked');
select 'complete again: ' || public_state || ' ' || replayed::text
  from ff_complete(p_handle => :'second', p_result => 'booked');
