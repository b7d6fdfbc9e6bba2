"""Would the server keep its word after a crash?"""

from collections.abc import Iterator

from pyff.doctor.patient import Finding, Patient, run_sql

_WEAK = """
select s.name, s.setting from pg_settings s
 where (s.name, s.setting) in (('fsync', 'off'), ('full_page_writes', 'off'), ('synchronous_commit', 'off'))
 order by s.name"""
_WHY = {
    "fsync": "a crash of the machine may destroy the whole database",
    "full_page_writes": "a crash of the machine may leave torn pages behind",
    "synchronous_commit": "the last moments before a crash are forgotten: work that was reported done runs again",
}


def check(patient: Patient) -> Iterator[Finding]:
    for row in patient.rows(_WEAK):
        yield Finding(
            f"{row['name']} is off",
            _WHY[row["name"]],
            (
                run_sql(f"alter system set {row['name']} = on"),
                run_sql("select pg_reload_conf()"),
            ),
        )
