"""Do all rows satisfy the invariants? Reads all tables."""

from collections.abc import Iterator

from pyff.doctor.context import CheckContext, Finding, run_sql


def check(context: CheckContext) -> Iterator[Finding]:
    if not context.installed():
        return
    for row in context.rows("select * from ff_check_invariants(20)"):
        yield Finding(
            f"{row['invariant']}: {row['subject']}: {row['detail']}",
            "the engine never writes such rows: its tables were changed by hand, or it has a bug",
            (
                run_sql("select * from ff_check_invariants()"),
                "please report it, with the preceding operations",
            ),
        )
