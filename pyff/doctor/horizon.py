"""Does something hold the horizon: an old transaction, a prepared one, a replication slot?"""

from collections.abc import Iterator

from pyff.doctor.patient import Finding, Patient, lasted, run_sql
from pyff.failure import Failure

WHY = "dead rows cannot be removed, so claims get slower; and no event newer than it is delivered"
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


def check(patient: Patient) -> Iterator[Finding]:
    held = patient.thresholds.held_ms
    for row in patient.rows(_SESSIONS, held):
        who = " ".join(str(row[name]) for name in ("usename", "application_name") if row[name])
        yield Finding(
            f"a transaction of {who or 'somebody'} (pid {row['pid']}, database {row['datname']}, {row['state']}) has "
            f"been open for {lasted(float(row['held_ms']))}",
            WHY,
            (
                run_sql(f"select pg_terminate_backend({row['pid']})"),
                run_sql(
                    "alter system set idle_in_transaction_session_timeout = '5min'", "against the next one"
                ),
                run_sql("select pg_reload_conf()"),
            ),
        )
    for row in patient.rows(_PREPARED, held):
        gid = str(row["gid"]).replace("'", "''")
        yield Finding(
            f"the prepared transaction '{gid}' in database {row['database']} has been left open for "
            f"{lasted(float(row['held_ms']))}",
            WHY,
            (run_sql(f"rollback prepared '{gid}'", "or commit prepared, as its manager has decided"),),
        )
    for row in patient.rows(_SLOTS, SLOT_AGE):
        state = "is far behind" if row["active"] else "is used by nobody"
        behind = f", {row['age']} transactions old" if row["age"] else ""
        yield Finding(
            f"the replication slot {row['slot_name']} {state}: it keeps {row['kept']} of WAL{behind}",
            "the disk fills up, and rows that it might still need cannot be removed",
            (
                run_sql(
                    f"select pg_drop_replication_slot('{row['slot_name']}')",
                    "if its consumer is gone for good",
                ),
            ),
        )
    if not patient.rows(_SEES_ALL)[0]["all"]:
        raise Failure("the transactions of other users are hidden from this login: it needs pg_monitor")
