insert into lim_q (payload) select '\x0102030405060708'::bytea from generate_series(1, 100);
with u as (update lim_q set ready = false, state = 1 where ctid = any (array(select ctid from lim_q where ready order by id limit 100 for update skip locked)) returning id) select array_agg(id)::text as ids from u \gset
update lim_q set state = 2 where id = any (:ids::text::bigint[]);
