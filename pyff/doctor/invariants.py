"""Is what is stored sound? Reads all of it."""

from collections.abc import Iterator

from pyff.doctor.patient import Finding, Patient, run_sql


def check(patient: Patient) -> Iterator[Finding]:
    if not patient.installed():
        return
    for row in patient.rows("select * from ff_check_invariants(20)"):
        yield Finding(
            f"{row['invariant']}: {row['subject']}: {row['detail']}",
            "the engine forbids such rows: somebody has written to its tables, or it has a defect",
            (run_sql("select * from ff_check_invariants()"), "please report it, with what was done before"),
        )
