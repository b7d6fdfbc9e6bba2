"""The `pyff` command. Each module of this package is one subcommand: `register(commands)` adds its parser."""

import argparse
import sys
from collections.abc import Sequence

from pyff import __version__
from pyff.cli import demo, flow, migrate, server, signal
from pyff.failure import Failure

COMMANDS = (demo, flow, migrate, server, signal)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="pyff", description="A durable execution engine that lives inside PostgreSQL."
    )
    top.add_argument("--version", action="version", version=f"pyff {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.register(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except Failure as failure:
        print(f"pyff: {failure}", file=sys.stderr)
        return failure.exit_code
    except KeyboardInterrupt:
        return 130
