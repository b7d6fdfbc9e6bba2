"""`pyff cancel`: cancel executions."""

import argparse
from typing import TYPE_CHECKING

from pyff.cli.arguments import Commands, command, text
from pyff.cli.batch import add_targets, each
from pyff.cli.database import engine
from pyff.cli.output import fields

if TYPE_CHECKING:
    from pyff.engine import Engine


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "cancel",
        "cancel executions",
        "Cancels executions in any state; the calls of a worker that holds one are rejected from then on. An "
        "execution that is already cancelled counts as done. For a whole flow use pyff flow cancel.",
        "pyff cancel 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --reason 'wrong customer'",
        "pyff cancel --lane mail --state waiting --yes",
    )
    add_targets(parser)
    parser.add_argument("--reason", type=text, default="", help="why; kept with the execution")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    def act(db: "Engine", one: str) -> tuple[dict[str, object], str]:
        done = db.cancel_execution(one, reason=args.reason)
        said = (
            "was already cancelled"
            if done.outcome == "already_cancelled"
            else f"cancelled, was {done.cancelled_from}"
        )
        return fields(done), said

    with engine(args) as db:
        return each(args, db, "cancel", act)
