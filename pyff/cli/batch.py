"""One action on several executions: given as arguments, read from the input, or selected by filters."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyff.cli.arguments import execution_id, given_input
from pyff.cli.exits import code, line
from pyff.cli.ls import add_filters, pages
from pyff.cli.output import print_one
from pyff.cli.progress import Progress
from pyff.connection_lost import ConnectionLost
from pyff.failure import Failure

if TYPE_CHECKING:
    from pyff.engine import Engine

Act = Callable[["Engine", str], tuple[dict[str, object], str]]
"""Acts on one execution. Returns the result for programs and a sentence for people."""


def add_targets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "execution_ids",
        nargs="*",
        type=_id_or_input,
        metavar="EXECUTION",
        help="{fp:N}:<uuid>, or the uuid; - reads ids from the input, one a line",
    )
    add_filters(parser.add_argument_group("instead of ids, all executions that"))  # type: ignore[arg-type]
    parser.add_argument("--yes", action="store_true", help="confirms a selection by filters")


def each(args: argparse.Namespace, db: "Engine", verb: str, act: Act) -> int:
    """Exit code 0 if all succeeded, else that of the first failure."""
    wanted = _targets(args, db, verb)
    worst = 0
    done = 0
    with Progress(
        verb, len(wanted), shown=None if len(wanted) > 1 and not sys.stdout.isatty() else False
    ) as bar:
        for one in wanted:
            try:
                answer, said = act(db, one)
            except ConnectionLost:
                raise
            except Failure as refused:
                worst = worst or code(refused)
                print(line(refused), file=sys.stderr)
            else:
                done += 1
                print_one(args, {"execution_id": one, **answer}, f"{one} {said}")
            bar.advance()
    if len(wanted) != 1 and not args.json:
        print(f"{verb}: {done} of {len(wanted)}")
    return worst


def _targets(args: argparse.Namespace, db: "Engine", verb: str) -> list[str]:
    filtered = any((args.lane, args.namespace, args.state, args.flow, args.tag))
    if filtered and args.execution_ids:
        raise Failure("give ids or filters, not both", hint=f"pyff {verb} --help")
    if not filtered and not args.execution_ids:
        raise Failure(
            "which executions?", hint=f"give ids, or filters such as --lane and --state: pyff {verb} --help"
        )
    if not filtered:
        return [one for given in args.execution_ids for one in (_from_input() if given == "-" else [given])]
    if not args.state:
        raise Failure("filters need --state", hint="give the states to select, such as --state failed")
    found = [row.execution_id for row in pages(db, args, after=None, at_most=None)]
    if found and not args.yes:
        raise Failure(f"this would {verb} {len(found)} executions", hint="add --yes if that is what you want")
    return found


def _from_input() -> list[str]:
    try:
        return [execution_id(text.strip()) for text in given_input() if text.strip()]
    except argparse.ArgumentTypeError as error:
        raise Failure(str(error), hint="nothing was done; the input must have one id a line") from None


def _id_or_input(given: str) -> str:
    return given if given == "-" else execution_id(given)
