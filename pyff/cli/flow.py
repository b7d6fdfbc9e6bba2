"""`pyff flow`: list, draw and cancel flows."""

import argparse
import dataclasses
from typing import TYPE_CHECKING

from pyff.cli.arguments import LIMIT, Commands, command, count, duration, group, text, uuid
from pyff.cli.database import connection, engine
from pyff.cli.exits import Missing
from pyff.cli.output import fields, in_colour, print_json, print_one, print_rows

if TYPE_CHECKING:
    from pyff._generated.results import ListFlowsRow

STATES = ("building", "open", "completed", "failed", "cancelled")
POLICIES = ("cancel_all", "cancel_pending", "cancel_flow_only")
COLUMNS = {
    "flow": "flow_id",
    "kind": "flow_kind",
    "namespace": "namespace",
    "state": "public_flow_state",
    "members": "node_count",
    "created": "created_at_ms",
    "ended": "terminal_at_ms",
}


def register(commands: Commands) -> None:
    verbs = group(
        commands, "flow", "list, show and cancel flows", "pyff flow show 018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
    )
    listed = command(verbs, "list", "list flows", "Lists flows by their ids.", "pyff flow list --state open")
    listed.add_argument("--state", choices=STATES, metavar="STATE", help=", ".join(STATES))
    listed.add_argument("--namespace", type=text, metavar="NAME")
    listed.add_argument("--after", type=uuid, metavar="ID", help="start after this one")
    listed.add_argument("--limit", type=count, default=50, metavar="N", help="at most N rows (default 50)")
    listed.set_defaults(run=_list)

    show = command(
        verbs,
        "show",
        "draw the graph of a flow with the states of its members",
        "Draws the graph of a flow: every member below those it waits for. --json prints one object with members, "
        "edges and groups.",
        "pyff flow show 018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "pyff flow show 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --dot | dot -Tsvg > flow.svg",
    )
    show.add_argument("flow_id", type=uuid, help="the id of the flow")
    form = show.add_mutually_exclusive_group()
    form.add_argument("--dot", action="store_true", help="print it for Graphviz")
    form.add_argument("--mermaid", action="store_true", help="print it for Mermaid")
    show.set_defaults(run=run)

    cancel = command(
        verbs,
        "cancel",
        "cancel a flow with its members",
        "Cancels a flow permanently. cancel_all ends every member, cancel_pending those that no worker holds, "
        "cancel_flow_only none: members continue, the graph is frozen.",
        "pyff flow cancel 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --reason 'order withdrawn' --wait 1m",
    )
    cancel.add_argument("flow_id", type=uuid, help="the id of the flow")
    cancel.add_argument(
        "--policy", choices=POLICIES, default="cancel_all", metavar="POLICY", help=", ".join(POLICIES)
    )
    cancel.add_argument("--reason", type=text, default="flow_cancelled")
    cancel.add_argument("--by", type=text, default="operator", metavar="NAME", help="who cancels it")
    cancel.add_argument(
        "--wait",
        type=duration,
        metavar="TIME",
        help="wait until all covered members have ended, at most this long",
    )
    cancel.set_defaults(run=_cancel)


def run(args: argparse.Namespace) -> int:
    from pyff.flow_picture import dot, draw, load, mermaid

    with connection(args) as conn:
        picture = load(conn, args.flow_id)
    if picture is None:
        raise Missing(f"there is no flow {args.flow_id}", hint="pyff flow list lists them")
    if args.json:
        print_json(
            {
                **fields(picture.flow),
                "members": [dataclasses.asdict(row) for row in picture.members.values()],
                "edges": [dataclasses.asdict(row) for row in picture.edges],
                "groups": [dataclasses.asdict(row) for row in picture.groups.values()],
            }
        )
    elif args.dot:
        print(dot(picture))
    elif args.mermaid:
        print(mermaid(picture))
    else:
        print(draw(picture, colour=in_colour()))
    return 0


def _list(args: argparse.Namespace) -> int:
    with engine(args) as db:
        rows: list[ListFlowsRow] = []
        after = args.after
        while len(rows) < args.limit:
            wanted = min(args.limit - len(rows), LIMIT)
            page = db.list_flows(state=args.state, namespace=args.namespace, after=after, limit=wanted)
            rows += page
            if len(page) < wanted:
                break
            after = page[-1].flow_id
    print_rows(args, rows, COLUMNS, "no such flow")
    return 0


def _cancel(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.cancel_flow(
            args.flow_id,
            policy=args.policy,
            reason=args.reason,
            cancelled_by=args.by,
            wait=None if args.wait is None else args.wait / 1000,
        )
    left = f", {done.pending_count} to follow" if done.pending_count and args.wait is None else ""
    print_one(args, done, f"{done.outcome.replace('_', ' ')}: {done.cancelled_count} members cancelled{left}")
    return 0
