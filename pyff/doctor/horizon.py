"""Does an old transaction, a prepared transaction or a replication slot hold the horizon?"""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, duration, run_sql
from pyff.failure import Failure

WHY = "dead rows cannot be removed, so claims become slower; and no newer event is delivered"
SLOT_AGE = 1_000_000  # transactions

_SESSIONS = """
select a.pid, a.usename, a.datname, a.application_name, a.state,
       extract(epoch from clock_timestamp() - a.xact_start) * 1000 as held_ms
  from pg_stat_activity a
 where a.pid <> pg_backend_pid() and a.backend_type in ('client backend', 'background worker', 'walsender')
   and (a.backend_xmin is not null or a.backend_xid is not null)
   and clock_timestamp() - a.xact_start > %s * interval '1 ms'
 order by a.xact_start limit 20"""
_SEES_ALL = "select pg_has_role('pg_read_all_stats', 'usage') as all"
_PREPARED = """
select p.gid, p.database, extract(epoch from clock_timestamp() - p.prepared) * 1000 as held_ms
  from pg_prepared_xacts p where clock_timestamp() - p.prepared > %s * interval '1 ms' order by p.prepared limit 20"""
_SLOTS = """
select s.slot_name, s.active, greatest(age(s.xmin), age(s.catalog_xmin)) as age,
       pg_size_pretty(pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn()
                                           else pg_current_wal_lsn() end, s.restart_lsn)) as kept
  from pg_replication_slots s
 where not s.active and s.restart_lsn is not null or greatest(age(s.xmin), age(s.catalog_xmin)) > %s
 order by s.slot_name"""


def check(context: CheckContext) -> Iterator[Finding]:
    held = context.thresholds.held_ms
    for row in context.rows(_SESSIONS, held):
        who = " ".join(str(row[name]) for name in ("usename", "application_name") if row[name])
        yield Finding(
            f"a transaction of {who or 'an unknown user'} (pid {row['pid']}, database {row['datname']}, "
            f"{row['state']}) has been open for {duration(float(row['held_ms']))}",
            WHY,
            (
                run_sql(f"select pg_terminate_backend({row['pid']})"),
                run_sql(
                    "alter system set idle_in_transaction_session_timeout = '5min'", "prevents the next one"
                ),
                run_sql("select pg_reload_conf()"),
            ),
        )
    for row in context.rows(_PREPARED, held):
        gid = str(row["gid"]).replace("'", "''")
        yield Finding(
            f"the prepared transaction '{gid}' in database {row['database']} has been left open for "
            f"{duration(float(row['held_ms']))}",
            WHY,
            (
                run_sql(
                    f"rollback prepared '{gid}'", "or commit prepared, as its transaction manager decided"
                ),
            ),
        )
    for row in context.rows(_SLOTS, SLOT_AGE):
        state = "is far behind" if row["active"] else "is not used"
        behind = f", {row['age']} transactions old" if row["age"] else ""
        yield Finding(
            f"the replication slot {row['slot_name']} {state}: it keeps {row['kept']} of WAL{behind}",
            "the disk fills up, and rows that it may still need cannot be removed",
            (
                run_sql(
                    f"select pg_drop_replication_slot('{row['slot_name']}')",
                    "if its consumer no longer exists",
                ),
            ),
        )
    if not context.rows(_SEES_ALL)[0]["all"]:
        raise Failure("this login cannot see transactions of other users: it needs pg_monitor")
