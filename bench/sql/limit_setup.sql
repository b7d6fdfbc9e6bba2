-- The denominator: the leanest honest queue, in raw SQL on a narrow row that keeps its history.
create table lim_q (
    id      bigint generated always as identity primary key,
    ready   boolean  not null default true,
    state   smallint not null default 0,
    payload bytea
) with (fillfactor = 80);
create index on lim_q (id) where ready;
insert into lim_q (payload) select '\x0102030405060708'::bytea from generate_series(1, 5000);
