"""Are there enough connections?"""

from collections.abc import Iterator

from pyff.doctor.patient import Finding, Patient, run_sql

SPARE = 20  # for people, migrations and a pool of the default size
PER_WORKER = 3  # one to work, one to renew, one to listen
FULL = 0.8

_USE = """
select current_setting('max_connections')::int as most,
       current_setting('superuser_reserved_connections')::int
       + coalesce(current_setting('reserved_connections', true), '0')::int as reserved,
       (select sum(d.numbackends) from pg_stat_database d) as used"""
_WORKERS = """
select count(*) as n from ff_v_worker w where w.alive"""


def check(patient: Patient) -> Iterator[Finding]:
    use = patient.rows(_USE)[0]
    free = use["most"] - use["reserved"]
    workers = patient.rows(_WORKERS)[0]["n"] if patient.installed() else 0
    wanted = SPARE + PER_WORKER * workers
    mend = (
        run_sql(f"alter system set max_connections = {max(100, 2 * wanted)}"),
        "restart the server, or put a pooler such as PgBouncer in front of it (docs/install.md)",
    )
    if free < wanted:
        yield Finding(
            f"max_connections is low: {use['most']}, of which {use['reserved']} are reserved; {workers} live workers "
            f"want {wanted}",
            "workers that get no connection cannot renew their leases, and their work is done twice",
            mend,
        )
    elif use["used"] > FULL * free:
        yield Finding(
            f"{use['used']} of {free} connections are in use",
            "the next worker that starts may be refused",
            mend,
        )
