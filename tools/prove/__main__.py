"""Load with faults, planted bugs, and the checker on their results."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tools.prove import results
from tools.prove.campaign import FAULTS, Campaign, Report
from tools.prove.mutants import MUTANTS, SOUND, hunt
from tools.prove.scenarios import SCENARIOS, Unavailable
from tools.prove.server import Server


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.prove", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    soak = commands.add_parser("soak", help="mixed load with faults, then the checker")
    soak.add_argument("--minutes", type=float, default=3)
    soak.add_argument(
        "--round",
        type=float,
        default=5,
        help="minutes after which the checker looks and a new database begins",
    )
    soak.add_argument("--clients", type=int, default=6)
    soak.add_argument("--faults", nargs="*", choices=sorted(FAULTS), default=sorted(FAULTS))
    soak.add_argument("--seed", type=int, default=0)
    soak.set_defaults(run=_soak)
    faults = commands.add_parser("faults", help="one scenario after the other")
    faults.add_argument("scenario", nargs="*", help=f"of {', '.join(SCENARIOS)}; all unless named")
    faults.add_argument("--seconds", type=float, default=20)
    faults.set_defaults(run=_faults)
    mutants = commands.add_parser("mutants", help="planted bugs, each of which the checker must find")
    mutants.add_argument("name", nargs="*", help="all unless named")
    mutants.add_argument(
        "--seconds", type=float, default=6, help="of load before each look, of which there are six"
    )
    mutants.set_defaults(run=_mutants)
    for command in (soak, faults, mutants):
        command.add_argument("--keep", action="store_true", help="write the figures into docs/reliability.md")
    args = parser.parse_args()
    return int(args.run(args))


def _soak(args: argparse.Namespace) -> int:
    total = Report(0)
    server = Server()
    faults = {name: FAULTS[name] for name in args.faults}
    try:
        number = 0
        while total.seconds < args.minutes * 60 - 1 and not total.bad:
            number += 1
            seconds = min(args.round * 60, args.minutes * 60 - total.seconds)
            with tempfile.TemporaryDirectory() as directory:
                campaign = Campaign(
                    server,
                    Path(directory),
                    dsn=server.clone(f"soak_{number}"),
                    clients=args.clients,
                    seed=args.seed + number,
                    cuts=True,
                    trouble="cancel",
                )
                total.add(campaign.run(seconds, faults))
            server.drop(f"soak_{number}")
            print(
                f"round {number}: {total.operations} operations, {len(total.violations)} violations",
                flush=True,
            )
    finally:
        server.close()
    print(total)
    if args.keep:
        results.keep("soak", {time.strftime("%Y-%m-%d %H:%M"): results.of_report(total)})
    return 1 if total.bad else 0


def _faults(args: argparse.Namespace) -> int:
    bad = 0
    for name in args.scenario or SCENARIOS:
        try:
            report = SCENARIOS[name](args.seconds)
        except Unavailable as reason:
            print(f"=== {name}: not on this machine: {reason}")
            continue
        print(f"=== {name}: {SCENARIOS[name].__doc__}\n{report}", flush=True)
        bad += report.bad
        if args.keep:
            results.keep("faults", {name: results.of_report(report)})
    return 1 if bad else 0


def _mutants(args: argparse.Namespace) -> int:
    missed = 0
    for catch in hunt(args.seconds, args.name):
        name = catch.mutant.name if catch.mutant else SOUND
        wrong = bool(catch.evidence) == (catch.mutant is None)
        missed += wrong
        told = catch.evidence[:110] or "nothing noticed"
        print(f"{'WRONG: ' if wrong else ''}{name:40} {told} ({catch.seconds:.0f} s)", flush=True)
        if args.keep and (catch.mutant or not args.name):  # the engine as it is gets its time only among all
            results.keep("mutants", {name: results.of_catch(catch)})
    print(f"{len(args.name) or len(MUTANTS) + 1} mutants, {missed} with a wrong result")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
