"""`pyff tail`: print the frames of an attempt's stream."""

import argparse
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pyff.cli.arguments import TERMINAL, Commands, command, execution_id, number, text
from pyff.cli.database import engine, pooled
from pyff.cli.output import print_json, printable, text_of
from pyff.cli.show import describe

if TYPE_CHECKING:
    from pyff._generated.results import DescribeExecutionResult
    from pyff.engine import Engine

LOOK_S = 0.2


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "tail",
        "print the frames of an execution's stream",
        "Prints the frames that an attempt has written. --follow waits for the first attempt, if there is none, and "
        "continues until the stream is closed.",
        "pyff tail '{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07' --follow",
        "pyff tail 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --attempt 0 --json | jq -r .payload",
    )
    parser.add_argument("execution_id", type=execution_id, help="{fp:N}:<uuid>, or the uuid")
    parser.add_argument(
        "--attempt", type=number, metavar="N", help="which attempt (default: the current one)"
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="wait for more until the stream is closed"
    )
    parser.add_argument("--after", default="0-0", type=text, metavar="FRAME", help="start after this frame")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    with ExitStack() as stack:
        db = stack.enter_context(pooled(args) if args.follow else engine(args))
        found = describe(db, args.execution_id)
        if args.follow and args.attempt is None:
            found = _begun(db, found)
        attempt = found.current_attempt_index if args.attempt is None else args.attempt
        if attempt is None:
            print("the execution has not been claimed: its stream is empty", file=sys.stderr)
            return 0
        for frame in db.tail(found.execution_id, attempt, after=args.after, limit=1000, follow=args.follow):
            if args.json:
                print_json(frame)
            else:
                sign = "" if frame.frame_type == "event" else f"[{frame.frame_type}] "
                print(f"{frame.frame_id}  {sign}{printable(text_of(frame.payload))}")
            if args.follow:
                sys.stdout.flush()
    return 0


def _begun(db: "Engine", found: "DescribeExecutionResult") -> "DescribeExecutionResult":
    """The execution once it has an attempt, or has ended without one."""
    while found.current_attempt_index is None and found.public_state not in TERMINAL:
        time.sleep(LOOK_S)
        found = describe(db, found.execution_id)
    return found
