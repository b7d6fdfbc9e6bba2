"""Are there enough connections?"""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, run_sql

SPARE = 20  # for psql, migrations and a pool of the default size
PER_WORKER = 5  # to claim, to report, to renew, to listen, for maintenance
FULL = 0.8

_USE = """
select current_setting('max_connections')::int as most,
       current_setting('superuser_reserved_connections')::int
       + coalesce(current_setting('reserved_connections', true), '0')::int as reserved,
       (select sum(d.numbackends) from pg_stat_database d) as used"""
_WORKERS = """
select count(*) as n from ff_v_worker w where w.alive"""


def check(context: CheckContext) -> Iterator[Finding]:
    use = context.rows(_USE)[0]
    free = use["most"] - use["reserved"]
    workers = context.rows(_WORKERS)[0]["n"] if context.installed() else 0
    wanted = SPARE + PER_WORKER * workers
    fix = (
        run_sql(f"alter system set max_connections = {max(100, 2 * wanted)}"),
        "restart the server, or put a pooler such as PgBouncer in front of it (docs/install.md)",
    )
    if free < wanted:
        yield Finding(
            f"max_connections is low: {use['most']}, of which {use['reserved']} are reserved; {workers} live workers "
            f"want {wanted}",
            "workers without a connection cannot renew their leases, and their work runs twice",
            fix,
        )
    elif use["used"] > FULL * free:
        yield Finding(
            f"{use['used']} of {free} connections are in use",
            "the next worker may get no connection",
            fix,
        )
