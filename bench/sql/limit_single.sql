insert into lim_q (payload) values ('\x0102030405060708'::bytea);
update lim_q set ready = false, state = 1 where id = (select id from lim_q where ready order by id limit 1 for update skip locked) returning id \gset
update lim_q set state = 2 where id = :id;
