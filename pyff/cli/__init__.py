"""The `pyff` command. Each module of this package that has `register` is one command and adds its parser."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module

from pyff import __version__
from pyff.cli.arguments import Parser
from pyff.failure import Failure

COMMANDS = (
    "migrate",
    "server",
    "demo",
    "submit",
    "ls",
    "show",
    "tail",
    "events",
    "top",
    "worker",
    "maintain",
    "flow",
    "signal",
    "approve",
    "cancel",
    "replay",
    "requeue",
    "lane",
    "budget",
    "quota",
    "keys",
    "doctor",
    "verify",
    "bench",
    "sql",
)


@cache
def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="pyff",
        description="A durable execution engine that lives inside PostgreSQL.",
        epilog="example:\n  pyff server start && pyff migrate && pyff doctor\n  pyff ls --state failed --json\n\n"
        "Without --dsn, commands use PYFF_DSN, else the server of `pyff server`.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"pyff {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"pyff.cli.{name}").register(commands)
    return top


def main(argv: Sequence[str] | None = None, *, begin: Callable[[], object] = lambda: None) -> int:
    """Runs a command and returns its exit code. Calls `begin` after the imports, before the command starts."""
    try:
        try:
            return _run(argv, begin)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # stdout closed (SIGPIPE)
        _give_up_output()
        return 141
    except OSError as error:  # for example: disk full
        _give_up_output()
        print(f"pyff: the output cannot be written: {error.strerror or error}", file=sys.stderr)
        return 1


def _give_up_output() -> None:
    """Replaces stdout: Python would report the error again when it flushes at exit."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _streams() -> None:
    """Sends output on a closed stream to /dev/null, and replaces characters that the terminal cannot show."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(argv: Sequence[str] | None, begin: Callable[[], object]) -> int:
    _streams()
    args = parser().parse_args(argv)
    begin()
    try:
        code = int(args.run(args))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except UnicodeError:
        refused = Failure("the input is not UTF-8", hint="check what is piped in")
    except OSError as error:
        refused = Failure(f"{error.filename or 'the system'}: {error.strerror or error}")
    except Exception as error:
        import psycopg

        from pyff.cli.exits import explained

        if isinstance(error, psycopg.Error):  # ConnectionLost is a Failure too
            refused = explained(error)
        elif isinstance(error, Failure):
            refused = error
        else:
            raise
    else:
        return code
    from pyff.cli.exits import code as code_of
    from pyff.cli.exits import line

    sys.stdout.flush()
    print(line(refused), file=sys.stderr)
    return code_of(refused)
