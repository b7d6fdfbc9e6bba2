"""Are the tables full of dead rows, or much larger than what is in them?"""

from collections.abc import Iterator

from pyff.doctor.patient import Finding, Patient, run_sql

ROW_BYTES = 8192  # no table of the engine has rows that large on average, out-of-line values apart

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


def check(patient: Patient) -> Iterator[Finding]:
    limits = patient.thresholds
    if patient.rows("select current_setting('autovacuum') as a")[0]["a"] == "off":
        yield Finding(
            "autovacuum is off",
            "dead rows are never removed: claims get slower every hour",
            (run_sql("alter system set autovacuum = on"), run_sql("select pg_reload_conf()")),
        )
    for row in patient.rows(_TABLES, patient.place.private):
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
                f"{name} has {dead} dead rows beside {live} live ones, {last}",
                "every look walks over them, and the table grows",
                (run_sql(f"vacuum (analyze) {name}"), "pyff doctor --only horizon  # if they stay"),
            )
        elif row["bytes"] > limits.slack_bytes and (live + dead + 1) * ROW_BYTES < row["bytes"]:
            yield Finding(
                f"{name} takes {row['size']} for {live} rows",
                "the space is reused but not given back, and scans read all of it",
                (run_sql(f"vacuum full {name}", "locks the table; pg_repack does not"),),
            )
