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
    from pyff.doctor import Verdict

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
            verdicts = []
            for verdict in examine(CheckContext.prepared(conn, thresholds), names):
                verdicts.append(verdict)
                _tell(args, verdict)
    except Unusable as error:
        error.exit_code = COULD_NOT_LOOK
        raise
    return _sum_up(args, verdicts)


def _tell(args: argparse.Namespace, verdict: "Verdict") -> None:
    for found in verdict.findings:
        if args.json:
            told = {"what": found.what, "why": found.why, "mend": found.fix}
            print_json({"check": verdict.check, "status": "finding", **told})
            continue
        print(f"{verdict.check}: {printable(found.what)}")
        print(f"    why:  {printable(found.why)}")
        for n, step in enumerate(found.fix):
            print(f"    {'      ' if n else 'fix:  '}{printable(step)}")
    if verdict.incomplete and args.json:
        print_json({"check": verdict.check, "status": "unseen", "reason": verdict.incomplete})
    elif not verdict.findings and args.json:
        print_json({"check": verdict.check, "status": "ok"})
    sys.stdout.flush()


def _sum_up(args: argparse.Namespace, verdicts: "list[Verdict]") -> int:
    incomplete = [verdict for verdict in verdicts if verdict.incomplete]
    findings = sum(len(verdict.findings) for verdict in verdicts)
    if not args.json:
        for verdict in incomplete:
            print(f"{verdict.check}: could not check: {verdict.incomplete}", file=sys.stderr)
        sound = [verdict.check for verdict in verdicts if not verdict.findings and not verdict.incomplete]
        if sound:
            print(f"ok: {', '.join(sound)}")
        if findings:
            print(f"{findings} finding{'' if findings == 1 else 's'}")
    return 1 if findings else COULD_NOT_LOOK if incomplete else 0
