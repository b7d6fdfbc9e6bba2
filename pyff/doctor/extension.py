"""Is pgcrypto installed in the search path of the functions? Is the server new enough?"""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, run_sql

_WHERE = """
select n.nspname from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pgcrypto'"""
_PINNED = r"""
select distinct c.setting from pg_proc p
 cross join lateral unnest(p.proconfig) c(setting)
 where p.pronamespace = quote_ident(current_schema())::regnamespace and p.proname like 'ff\_%'
   and c.setting like 'search_path=%'"""


def check(context: CheckContext) -> Iterator[Finding]:
    if context.conn.info.server_version < 150000:
        yield Finding(
            f"PostgreSQL {context.conn.info.server_version // 10000} is too old",
            "pyff needs 15 or newer",
            ("upgrade the server",),
        )
    found = context.rows(_WHERE)
    if not found:
        yield Finding(
            "the extension pgcrypto is missing",
            "waitpoint tokens can be neither created nor verified, and new keys cannot be installed",
            (run_sql("create extension pgcrypto"),),
        )
        return
    schema = str(found[0]["nspname"])
    for row in context.rows(_PINNED):
        written = [
            name.strip() for name in str(row["setting"]).partition("=")[2].split(",")
        ]  # quoted if needed
        if schema not in (*(name.strip('"') for name in written), "pg_catalog"):
            yield Finding(
                f"the extension pgcrypto is in schema {schema}, outside the path of the functions ({row['setting']})",
                "waitpoint tokens can be neither created nor verified",
                (run_sql(f"alter extension pgcrypto set schema {written[0]}"),),
            )
            return
