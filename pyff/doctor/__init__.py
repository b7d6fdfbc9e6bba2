"""Finds common problems around the engine, and how to fix them. Read-only.

Each check is a function of one module here: it takes a `CheckContext` and yields `Finding`s.
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
from pyff.doctor.context import CheckContext, Finding, Thresholds
from pyff.failure import Failure

Check = Callable[[CheckContext], Iterator[Finding]]

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
"""Checks that read all rows."""


@dataclass(frozen=True)
class CheckResult:
    """The findings of a check. `incomplete`: why it could not run, or not finish."""

    check: str
    findings: tuple[Finding, ...]
    incomplete: str = ""


def examine(context: CheckContext, names: Sequence[str]) -> Iterator[CheckResult]:
    for name in names:
        check = {**CHECKS, **DEEP}[name]
        found: list[Finding] = []
        incomplete = ""
        try:
            found.extend(check(context))
        except Failure as error:
            incomplete = error.message
        except psycopg.errors.InsufficientPrivilege as error:
            incomplete = f"{error.diag.message_primary} (hint: ff_operator and pg_monitor see everything)"
        except psycopg.Error as error:
            incomplete = error.diag.message_primary or (str(error).splitlines() or ["no reason given"])[0]
        yield CheckResult(name, tuple(found), incomplete)


__all__ = ["CHECKS", "DEEP", "Check", "CheckContext", "CheckResult", "Finding", "Thresholds", "examine"]
