-- The state of the engine's tables, from PostgreSQL's statistics alone; no table is read. The autovacuum threshold is
-- computed from the table's storage settings, otherwise from the server's settings.
create or replace view ff_v_bloat as
select c.relname::text as table_name,
       s.n_live_tup as live_tuples,
       s.n_dead_tup as dead_tuples,
       round(s.n_dead_tup / nullif(s.n_live_tup + s.n_dead_tup, 0)::numeric, 3) as dead_ratio,
       pg_table_size(c.oid) as table_bytes,
       pg_indexes_size(c.oid) as index_bytes,
       s.n_tup_upd as updates,
       round(s.n_tup_hot_upd / nullif(s.n_tup_upd, 0)::numeric, 3) as hot_ratio,
       v.threshold as vacuum_threshold,
       round((s.n_dead_tup / nullif(v.threshold, 0))::numeric, 2) as vacuum_lag,
       s.last_autovacuum,
       s.last_vacuum,
       s.autovacuum_count,
       s.last_autoanalyze,
       s.n_mod_since_analyze as changes_since_analyze,
       c.reloptions as settings
  from pg_class c
  join pg_stat_all_tables s on s.relid = c.oid
 cross join lateral (
        select coalesce(max(o.option_value) filter (where o.option_name = 'autovacuum_vacuum_threshold'),
                        current_setting('autovacuum_vacuum_threshold'))::float8
               + coalesce(max(o.option_value) filter (where o.option_name = 'autovacuum_vacuum_scale_factor'),
                          current_setting('autovacuum_vacuum_scale_factor'))::float8
               * greatest(c.reltuples, 0) as threshold
          from pg_options_to_table(c.reloptions) o) v
 where c.relnamespace = (select x.relnamespace from pg_class x where x.oid = 'ff_execution'::regclass)
   and c.relname like E'ff\\_%' and c.relkind = 'r';

comment on view ff_v_bloat is
$$The engine's tables: dead rows, sizes, how many updates stayed HOT, whether autovacuum keeps up. One row per table;
nothing is read but PostgreSQL's statistics.$$;
comment on column ff_v_bloat.table_name is 'The table.';
comment on column ff_v_bloat.live_tuples is 'How many rows it has, by estimate.';
comment on column ff_v_bloat.dead_tuples is 'How many dead rows vacuum has not removed yet, by estimate.';
comment on column ff_v_bloat.dead_ratio is 'The share of dead rows.';
comment on column ff_v_bloat.table_bytes is 'The size of the table with its TOAST and maps.';
comment on column ff_v_bloat.index_bytes is 'The size of all its indexes.';
comment on column ff_v_bloat.updates is 'How many rows were updated since the statistics were reset.';
comment on column ff_v_bloat.hot_ratio is 'The share of updates that left the indexes alone.';
comment on column ff_v_bloat.vacuum_threshold is 'The number of dead rows that triggers autovacuum.';
comment on column ff_v_bloat.vacuum_lag is
    'dead_tuples / vacuum_threshold. Above 1 for long: autovacuum lags, or an old transaction still sees the rows.';
comment on column ff_v_bloat.last_autovacuum is 'When autovacuum last processed the table.';
comment on column ff_v_bloat.last_vacuum is 'When VACUUM was last run manually.';
comment on column ff_v_bloat.autovacuum_count is 'How often autovacuum has processed the table.';
comment on column ff_v_bloat.last_autoanalyze is 'When autovacuum last analyzed the table.';
comment on column ff_v_bloat.changes_since_analyze is 'How many rows have changed since the last analyze.';
comment on column ff_v_bloat.settings is 'Storage settings of the table.';
-- grant: ff_reader, ff_producer, ff_worker, ff_operator, ff_admin
