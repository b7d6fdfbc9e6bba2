"""`pyff replay`: run ended executions again."""

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
        "replay",
        "run ended executions again",
        "Runs ended executions again, with the same payload; attempts and results are kept, retries count from zero.",
        "pyff replay 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --reason 'fixed the template'",
        "pyff replay --lane mail --state failed --yes",
    )
    add_targets(parser)
    parser.add_argument("--reason", type=text, help="why; kept in the events")
    parser.add_argument("--by", type=text, metavar="NAME", help="the operator; kept in the events")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    def act(db: "Engine", one: str) -> tuple[dict[str, object], str]:
        done = db.replay_execution(one, reason=args.reason, requested_by=args.by)
        return fields(done), f"replayed, is {done.public_state}"

    with engine(args) as db:
        return each(args, db, "replay", act)
