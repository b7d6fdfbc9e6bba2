"""Arguments that several commands share, and the parser of a command."""

import argparse
import getpass
import json
import re
import sys
import textwrap
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeAlias
from uuid import UUID

from pyff.cli.database import add_dsn
from pyff.cli.output import add_json
from pyff.failure import Failure

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = argparse._SubParsersAction

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
STATES = (
    "waiting",
    "resumable",
    "delayed",
    "waiting_children",
    "rate_limited",
    "active",
    "suspended",
    "completed",
    "failed",
    "cancelled",
    "expired",
    "skipped",
)
TERMINAL = ("completed", "failed", "cancelled", "expired", "skipped")
LONGEST_MS = 2**53 - 1
LIMIT = 1000  # rows that a list function returns at most


class Parser(argparse.ArgumentParser):
    """Prints usage errors on one line, like every other error. Subparsers do the same."""

    def error(self, message: str) -> NoReturn:
        from pyff.cli.exits import USAGE, line

        self.exit(USAGE, line(Failure(message, hint=f"{self.prog} --help")) + "\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401
        """Reports unrecognized arguments here: the parent parser could not name the command."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest


def command(
    commands: "Commands", name: str, help_: str, description: str, *examples: str, database: bool = True
) -> argparse.ArgumentParser:
    """A parser with --json, --dsn if it needs a database, and its examples."""
    parser = commands.add_parser(
        name,
        help=help_,
        description=textwrap.fill(description, 100),
        epilog="\n".join(["example:", *(f"  {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_json(parser)
    if database:
        add_dsn(parser)
    return parser


def group(commands: "Commands", name: str, help_: str, *examples: str) -> "Commands":
    """A command that only has subcommands."""
    parser = commands.add_parser(
        name,
        help=help_,
        description=help_[0].upper() + help_[1:] + ".",
        epilog="\n".join(["example:", *(f"  {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def text(given: str) -> str:
    """Any text that PostgreSQL can store."""
    try:
        given.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("it is not UTF-8") from None
    return given


def execution_id(given: str) -> str:
    """The full id; for a bare uuid, the id that the engine derives from it."""
    if re.fullmatch(r"\{fp:\d{1,3}\}:[0-9a-fA-F-]{36}", given):
        return given
    try:
        return f"{{fp:{UUID(given).bytes[-1]}}}:{UUID(given)}"
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{given[:64]!r} is not an execution id such as {{fp:7}}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07"
        ) from None


def uuid(given: str) -> UUID:
    try:
        return UUID(given)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{given[:64]!r} is not a uuid") from None


def duration(given: str) -> int:
    """Milliseconds: 250ms, 30s, 5m, 2h, 1d; a bare number is seconds."""
    match = re.fullmatch(r"(\d{1,12})(ms|s|m|min|h|d)?", given)
    if not match:
        raise argparse.ArgumentTypeError(f"{given[:64]!r} is not a duration such as 250ms, 30s, 5m, 2h, 1d")
    ms = int(match[1]) * _UNITS[match[2] or "s"]
    if ms > LONGEST_MS:
        raise argparse.ArgumentTypeError(f"{given[:64]!r} is too long")
    return ms


def json_object(given: str) -> dict[str, Any]:
    try:
        value = json.loads(text(given))
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"it is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("it is not a JSON object")
    return value


def tag(given: str) -> tuple[str, str]:
    key, sign, value = text(given).partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{given[:64]!r} is not key=value")
    return key, value


def count(given: str) -> int:
    if not (given.isascii() and given.isdigit() and 0 < int(given) <= 1_000_000_000):
        raise argparse.ArgumentTypeError(f"{given[:32]!r} is not a count from 1 on")
    return int(given)


def number(given: str) -> int:
    """A whole number that fits into PostgreSQL's bigint; 0 or more."""
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise argparse.ArgumentTypeError(f"{given[:32]!r} is not a whole number")
    return int(given)


def given_input() -> TextIO:
    """The standard input."""
    if sys.stdin is None:
        raise Failure("there is no input to read", hint="pipe it in")
    return sys.stdin


def account() -> str:
    """The user's account name; empty if it has none, as in some containers."""
    with suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""
