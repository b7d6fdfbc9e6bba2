"""Looks for what commonly goes wrong around the engine, and says what to do about it. It changes nothing.

Each check is a function of one module here: it takes a `Patient` and yields `Finding`s.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import psycopg

from pyff.doctor import (
    bloat,
    clock,
    connections,
    durability,
    extension,
    functions,
    grants,
    horizon,
    invariants,
    keys,
    lanes,
    maintenance,
    stuck,
)
from pyff.doctor.patient import Finding, Patient, Thresholds
from pyff.failure import Failure

Check = Callable[[Patient], Iterator[Finding]]

CHECKS: dict[str, Check] = {
    "functions": functions.check,
    "extension": extension.check,
    "grants": grants.check,
    "connections": connections.check,
    "durability": durability.check,
    "clock": clock.check,
    "lanes": lanes.check,
    "maintenance": maintenance.check,
    "stuck": stuck.check,
    "horizon": horizon.check,
    "bloat": bloat.check,
    "keys": keys.check,
}
DEEP: dict[str, Check] = {"invariants": invariants.check}
"""Checks that read everything."""


@dataclass(frozen=True)
class Verdict:
    """What a check found. `unseen` says why it could not look, or could not look to the end."""

    check: str
    findings: tuple[Finding, ...]
    unseen: str = ""


def examine(patient: Patient, names: Sequence[str]) -> Iterator[Verdict]:
    for name in names:
        check = {**CHECKS, **DEEP}[name]
        found: list[Finding] = []
        unseen = ""
        try:
            found.extend(check(patient))
        except Failure as error:
            unseen = error.message
        except psycopg.errors.InsufficientPrivilege as error:
            unseen = f"{error.diag.message_primary} (hint: ff_operator and pg_monitor see everything)"
        except psycopg.Error as error:
            unseen = error.diag.message_primary or (str(error).splitlines() or ["no reason given"])[0]
        yield Verdict(name, tuple(found), unseen)


__all__ = ["CHECKS", "DEEP", "Check", "Finding", "Patient", "Thresholds", "Verdict", "examine"]
