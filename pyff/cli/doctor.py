"""`pyff doctor`: what is wrong, why it matters, how to fix it."""

import argparse
import sys
from typing import TYPE_CHECKING

from pyff.cli.arguments import Commands, command, duration
from pyff.cli.database import connection
from pyff.cli.exits import USAGE, Unusable
from pyff.cli.output import print_json, printable
from pyff.failure import Failure

if TYPE_CHECKING:
    from pyff.doctor import CheckResult

COULD_NOT_LOOK = 2


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "doctor",
        "find problems of a database, and how to fix them",
        "Checks for old functions, missing extensions, roles and grants, unsafe settings, too few connections, clocks "
        "that differ, paused lanes with work, missing maintenance, stuck work, transactions that hold the horizon, "
        "bloat and expired keys. Read-only. Exit code 0: no findings, 1: findings, 2: some checks could not run. "
        "The roles ff_operator and pg_monitor see everything.",
        "pyff doctor",
        "pyff doctor --only horizon --only bloat --json",
    )
    parser.add_argument(
        "--only", action="append", metavar="CHECK", help="run only this check; may be repeated"
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="CHECK", help="skip this check; may be repeated"
    )
    parser.add_argument("--deep", action="store_true", help="also check the invariants of all rows")
    parser.add_argument(
        "--held-for", type=duration, metavar="TIME", help="a transaction is old after this (default 5m)"
    )
    parser.add_argument(
        "--late-by",
        type=duration,
        metavar="TIME",
        help="work and maintenance are late after this (default 10m)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyff.doctor import CHECKS, DEEP, CheckContext, Thresholds, examine

    names = args.only or [*CHECKS, *(DEEP if args.deep else ())]
    for name in (*names, *args.skip):
        if name not in CHECKS and name not in DEEP:
            unknown = Failure(f"unknown check {name!r}", hint="one of " + ", ".join((*CHECKS, *DEEP)))
            unknown.exit_code = USAGE
            raise unknown
    names = [name for name in names if name not in args.skip]
    usual = Thresholds()
    thresholds = Thresholds(
        held_ms=usual.held_ms if args.held_for is None else args.held_for,
        late_ms=usual.late_ms if args.late_by is None else args.late_by,
    )
    try:
        with connection(args) as conn:
            results = []
            for result in examine(CheckContext.prepared(conn, thresholds), names):
                results.append(result)
                _print_result(args, result)
    except Unusable as error:
        error.exit_code = COULD_NOT_LOOK
        raise
    return _sum_up(args, results)


def _print_result(args: argparse.Namespace, result: "CheckResult") -> None:
    for found in result.findings:
        if args.json:
            finding = {"what": found.what, "why": found.why, "fix": found.fix}
            print_json({"check": result.check, "status": "finding", **finding})
            continue
        print(f"{result.check}: {printable(found.what)}")
        print(f"    why:  {printable(found.why)}")
        for n, step in enumerate(found.fix):
            print(f"    {'      ' if n else 'fix:  '}{printable(step)}")
    if result.incomplete and args.json:
        print_json({"check": result.check, "status": "unseen", "reason": result.incomplete})
    elif not result.findings and args.json:
        print_json({"check": result.check, "status": "ok"})
    sys.stdout.flush()


def _sum_up(args: argparse.Namespace, results: "list[CheckResult]") -> int:
    incomplete = [result for result in results if result.incomplete]
    findings = sum(len(result.findings) for result in results)
    if not args.json:
        for result in incomplete:
            print(f"{result.check}: could not check: {result.incomplete}", file=sys.stderr)
        sound = [result.check for result in results if not result.findings and not result.incomplete]
        if sound:
            print(f"ok: {', '.join(sound)}")
        if findings:
            print(f"{findings} finding{'' if findings == 1 else 's'}")
    return 1 if findings else COULD_NOT_LOOK if incomplete else 0
