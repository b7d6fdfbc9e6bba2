"""`pyff flow show`: a flow and its members, drawn in the terminal or printed for other tools."""

import argparse
import os
import sys
from typing import TYPE_CHECKING
from uuid import UUID

from pyff.failure import Failure

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def register(commands: "Commands") -> None:
    parser = commands.add_parser("flow", help="look at flows", description="Looks at flows.")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    show = verbs.add_parser(
        "show",
        help="draw the graph of a flow with the states of its members",
        description="Draws the graph of a flow: every member under those it waits for.",
        epilog="example: pyff flow show 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --dot | dot -Tsvg > flow.svg",
    )
    show.add_argument("flow_id", type=_uuid, help="the id of the flow")
    form = show.add_mutually_exclusive_group()
    form.add_argument("--dot", action="store_true", help="print it in the language of Graphviz")
    form.add_argument("--mermaid", action="store_true", help="print it in the language of Mermaid")
    show.add_argument("--dsn", help="the database (default: PYFF_DSN, else the kept server)")
    show.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyff import postgres
    from pyff.flow_picture import dot, draw, load, mermaid

    dsn = args.dsn or postgres.external_dsn()
    if not dsn:
        raise Failure(
            "which database?", hint="give --dsn or set PYFF_DSN; pyff server dsn names the kept server"
        )
    picture = load(dsn, args.flow_id)
    if picture is None:
        raise Failure(f"there is no flow {args.flow_id}", hint="select * from ff_list_flows() lists them")
    if args.dot:
        print(dot(picture))
    elif args.mermaid:
        print(mermaid(picture))
    else:
        print(draw(picture, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
    return 0


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a uuid") from None
