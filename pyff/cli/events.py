"""`pyff events`: print events from the outbox."""

import argparse
import sys
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING

from pyff.cli.arguments import Commands, command, count, execution_id, tag, text
from pyff.cli.database import engine, pooled
from pyff.cli.output import cell, moment, print_json

if TYPE_CHECKING:
    from pyff._generated.results import ReadEventsRow

FAMILIES = ("completion", "lease", "suspension", "signal", "operator", "worker", "flow")


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "events",
        "print past events, or follow new ones",
        "Prints events in order. --follow waits for new ones. With --json each event has a cursor for --after.",
        "pyff events --family completion --type failed --follow",
        "pyff events --execution 018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
    )
    parser.add_argument("--execution", type=execution_id, metavar="ID", help="events of this execution")
    parser.add_argument("--family", choices=FAMILIES, metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--type", action="append", type=text, metavar="TYPE", help="may be repeated")
    parser.add_argument("--namespace", type=text, metavar="NAME")
    parser.add_argument(
        "--tag", type=tag, action="append", default=[], metavar="KEY=VALUE", help="may be repeated"
    )
    parser.add_argument(
        "--after", metavar="CURSOR", type=text, help="start after this cursor; `now`: only new events"
    )
    parser.add_argument("--limit", type=count, metavar="N", help="stop after N events")
    parser.add_argument("-f", "--follow", action="store_true", help="wait for new events")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    with ExitStack() as stack:
        db = stack.enter_context(pooled(args) if args.follow else engine(args))
        found = db.subscribe(
            args.family,
            after=args.after,
            namespace=args.namespace,
            tags=dict(args.tag) or None,
            execution_id=args.execution,
            event_types=args.type,
            follow=args.follow,
        )
        for event in islice(found, args.limit):
            if args.json:
                print_json(event)
            else:
                print(_line(event))
            if args.follow:
                sys.stdout.flush()
        found.close()
    return 0


def _line(event: "ReadEventsRow") -> str:
    about = event.execution_id or event.flow_id or event.worker_instance_id or event.lane_id or ""
    lane = f" {event.lane_id}" if event.lane_id and event.execution_id else ""
    worker = f" by {event.worker_instance_id}" if event.worker_instance_id and event.execution_id else ""
    said = event.reason or event.effect or ""
    details = f" {cell('', event.details)}" if event.details else ""
    return (
        f"{moment(event.occurred_at_ms or 0)}  {event.family}/{event.event_type}  {about}{lane}{worker}"
        f"{': ' + cell('', said) if said else ''}{details}"
    )
