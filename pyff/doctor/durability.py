"""Do committed transactions survive a crash?"""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, run_sql

_WEAK = """
select s.name, s.setting from pg_settings s
 where (s.name, s.setting) in (('fsync', 'off'), ('full_page_writes', 'off'), ('synchronous_commit', 'off'))
 order by s.name"""
_WHY = {
    "fsync": "a crash of the machine may destroy the whole database",
    "full_page_writes": "a crash of the machine may leave torn pages behind",
    "synchronous_commit": "the last commits before a crash are lost: completed work runs again",
}


def check(context: CheckContext) -> Iterator[Finding]:
    for row in context.rows(_WEAK):
        yield Finding(
            f"{row['name']} is off",
            _WHY[row["name"]],
            (
                run_sql(f"alter system set {row['name']} = on"),
                run_sql("select pg_reload_conf()"),
            ),
        )
