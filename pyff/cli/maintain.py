"""`pyff maintain`: keep the database maintained."""

import argparse
import dataclasses
import json
import signal
import sys
import time
from typing import TYPE_CHECKING

from pyff.cli.arguments import Commands, command
from pyff.cli.database import find, open_one, parts

if TYPE_CHECKING:
    from pyff._generated.results import TickRow


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "maintain",
        "run the maintenance of a database: timeouts, dispatch, retention",
        "Calls ff_tick until SIGTERM or SIGINT, which ends it after the current call, with exit code 0. Several may "
        "run concurrently. A login with the role ff_worker or ff_operator is enough. --json prints an object per step "
        "that processed rows.",
        "pyff maintain --once",
        "pyff maintain --every 2 --json >> maintenance.log",
    )
    parser.add_argument("--once", action="store_true", help="do all due work, then exit")
    parser.add_argument(
        "--every",
        type=_seconds,
        default=0.75,
        metavar="SECONDS",
        help="the pause between calls, +-50 %% (default 0.75)",
    )
    parser.add_argument(
        "--limit", type=_integer, default=200, metavar="N", help="rows per step (default 200)"
    )
    parser.add_argument(
        "--max-ms",
        type=_integer,
        default=1000,
        metavar="MS",
        help="a call starts no step after this time (default 1000)",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="STEP",
        help="run only this step, e.g. sweep_delayed; may be repeated",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyff.maintain import Maintenance

    dsn = find(args)
    if args.once:
        open_one(dsn).close()  # for the best message on a connection error
    else:
        parts(dsn)  # only the syntax: an unreachable server is retried
    maintenance = Maintenance(
        dsn,
        only=args.only,
        limit=args.limit,
        max_ms=args.max_ms,
        every_s=args.every,
        say=lambda text: print(f"pyff: {text}", file=sys.stderr, flush=True),
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: maintenance.stop.set())
    for rows in maintenance.once() if args.once else maintenance.forever():
        _tell(rows, as_json=args.json)
    return 0


def _tell(rows: "list[TickRow]", *, as_json: bool) -> None:
    for row in rows:
        if not row.processed and not row.errors:
            continue
        if as_json:
            print(json.dumps({"at_ms": time.time_ns() // 1_000_000, **dataclasses.asdict(row)}), flush=True)
            continue
        failed = f", {row.errors} failed (see ff_reconciler_error)" if row.errors else ""
        print(f"{row.step}: {row.processed} processed{failed} in {row.elapsed_ms} ms", flush=True)


def _integer(text: str) -> int:
    """An integer of PostgreSQL; the engine checks its range."""
    try:
        number = int(text)
    except ValueError:
        number = 2**31
    if not -(2**31) <= number < 2**31:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a whole number, or too large")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.01 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not between 0.01 and 3600")
    return seconds
