\set id random(1, 100)
select ff_append_frame((select handle from bench_stream where id = :id), '\x78797a78797a78797a78797a78797a78797a78797a78797a78797a78797a7879'::bytea);
