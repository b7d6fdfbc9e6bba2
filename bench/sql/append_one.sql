select ff_append_frame((select handle from bench_stream where id = 1), '\x78797a78797a78797a78797a78797a78797a78797a78797a78797a78797a7879'::bytea);
