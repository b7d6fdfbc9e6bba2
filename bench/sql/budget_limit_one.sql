update bench_counter set v = v + 1 where id = 0;
