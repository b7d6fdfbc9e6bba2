-- Executions cannot wait for signals without a key. The server generates the secret; no function returns it.
insert into ff_waitpoint_hmac (kid, secret, active, installed_at_ms)
select 'migrate', gen_random_bytes(32), true, ff__now_ms()
 where not exists (select from ff_waitpoint_hmac h where h.active)
    on conflict do nothing;
