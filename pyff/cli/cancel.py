"""`pyff cancel`: end executions that should not run."""

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
        "Cancels executions, whatever they are doing; a worker that holds one is refused from then on. One that is "
        "cancelled already counts as done. A whole flow: pyff flow cancel.",
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
            "was cancelled already"
            if done.outcome == "already_cancelled"
            else f"cancelled, was {done.cancelled_from}"
        )
        return fields(done), said

    with engine(args) as db:
        return each(args, db, "cancel", act)
