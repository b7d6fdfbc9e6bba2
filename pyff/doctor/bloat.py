"""Do tables have too many dead rows, or too much free space?"""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, run_sql

ROW_BYTES = 8192  # above the average row size of every table, without out-of-line values

_TABLES = r"""
select format('%%I.%%I', n.nspname, c.relname) as name, s.n_dead_tup as dead, s.n_live_tup as live,
       pg_relation_size(c.oid) as bytes, pg_size_pretty(pg_relation_size(c.oid)) as size,
       coalesce('autovacuum_enabled=false' = any(c.reloptions) or 'autovacuum_enabled=off' = any(c.reloptions), false)
       as neglected,
       greatest(s.last_vacuum, s.last_autovacuum) as vacuumed
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_stat_all_tables s on s.relid = c.oid
 where n.nspname = %s and c.relkind = 'r' and c.relname like 'ff\_%%'
 order by s.n_dead_tup desc, c.relname"""


def check(context: CheckContext) -> Iterator[Finding]:
    limits = context.thresholds
    if context.rows("select current_setting('autovacuum') as a")[0]["a"] == "off":
        yield Finding(
            "autovacuum is off",
            "dead rows are never removed: claims become slower",
            (run_sql("alter system set autovacuum = on"), run_sql("select pg_reload_conf()")),
        )
    for row in context.rows(_TABLES, context.place.private):
        name, dead, live = row["name"], row["dead"], row["live"]
        if row["neglected"]:
            yield Finding(
                f"autovacuum is switched off for {name}",
                "its dead rows are never removed",
                (run_sql(f"alter table {name} reset (autovacuum_enabled)"),),
            )
        if dead > limits.dead_rows and dead > limits.dead_part * (dead + live):
            last = f"last vacuumed {row['vacuumed']:%Y-%m-%d %H:%M}" if row["vacuumed"] else "never vacuumed"
            yield Finding(
                f"{name} has {dead} dead rows and {live} live ones, {last}",
                "every scan reads them, and the table grows",
                (run_sql(f"vacuum (analyze) {name}"), "pyff doctor --only horizon  # if they stay"),
            )
        elif row["bytes"] > limits.slack_bytes and (live + dead + 1) * ROW_BYTES < row["bytes"]:
            yield Finding(
                f"{name} takes {row['size']} for {live} rows",
                "the space is reused but not released, and scans read all of it",
                (run_sql(f"vacuum full {name}", "locks the table; pg_repack does not"),),
            )
