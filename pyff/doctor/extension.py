"""Is pgcrypto there, where the functions look for it? And is the server new enough?"""

from collections.abc import Iterator

from pyff.doctor.patient import Finding, Patient, run_sql

_WHERE = """
select n.nspname from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pgcrypto'"""
_PINNED = r"""
select distinct c.setting from pg_proc p
 cross join lateral unnest(p.proconfig) c(setting)
 where p.pronamespace = quote_ident(current_schema())::regnamespace and p.proname like 'ff\_%'
   and c.setting like 'search_path=%'"""


def check(patient: Patient) -> Iterator[Finding]:
    if patient.conn.info.server_version < 150000:
        yield Finding(
            f"PostgreSQL {patient.conn.info.server_version // 10000} is too old",
            "pyff needs 15 or newer",
            ("upgrade the server",),
        )
    found = patient.rows(_WHERE)
    if not found:
        yield Finding(
            "the extension pgcrypto is missing",
            "tokens of waitpoints can be neither made nor checked, and new keys cannot be installed",
            (run_sql("create extension pgcrypto"),),
        )
        return
    schema = str(found[0]["nspname"])
    for row in patient.rows(_PINNED):
        written = [
            name.strip() for name in str(row["setting"]).partition("=")[2].split(",")
        ]  # quoted as need be
        if schema not in (*(name.strip('"') for name in written), "pg_catalog"):
            yield Finding(
                f"the extension pgcrypto is in schema {schema}, where the functions do not look ({row['setting']})",
                "tokens of waitpoints can be neither made nor checked",
                (run_sql(f"alter extension pgcrypto set schema {written[0]}"),),
            )
            return
