"""`pyff bench`: measures the speed of the engine on this database."""

import argparse
from contextlib import ExitStack

from pyff.cli.arguments import Commands, command, count, duration
from pyff.cli.database import find, open_one
from pyff.cli.output import print_one
from pyff.cli.progress import Progress
from pyff.cli.table import aligned


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "bench",
        "measure create, claim and complete on a database",
        "Runs clients that create, claim and complete executions on their own lane, and prints cycles per second "
        "and the latency of the calls. Its executions are deleted at the end if the login may (ff_admin), else by "
        "retention. --temporary uses a new server that is deleted.",
        "pyff bench --seconds 10s --clients 4",
        "pyff bench --temporary --json",
    )
    parser.add_argument(
        "--seconds", type=duration, default=5000, metavar="TIME", help="how long (default 5s)"
    )
    parser.add_argument(
        "--clients", type=count, default=4, metavar="N", help="concurrent connections (default 4)"
    )
    parser.add_argument(
        "--payload-bytes", type=count, default=100, metavar="N", help="size of a payload (default 100)"
    )
    parser.add_argument("--temporary", action="store_true", help="use a new server that is deleted")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyff.measure import run as measure

    with ExitStack() as stack:
        if args.temporary:
            from pyff.migrate import migrate
            from pyff.postgres import temporary

            dsn = stack.enter_context(
                temporary(fsync="on", synchronous_commit="on", full_page_writes="on")
            ).dsn
            migrate(dsn)
        else:
            dsn = find(args)
            open_one(dsn).close()
        bar = stack.enter_context(Progress("measuring", args.seconds))
        report = measure(
            dsn, seconds=args.seconds / 1000, clients=args.clients, size=args.payload_bytes, tick=bar.reach
        )
    rows = [
        [name, f"{call.p50_ms:.2f}", f"{call.p95_ms:.2f}", f"{call.p99_ms:.2f}"]
        for name, call in report.calls.items()
    ]
    print_one(
        args,
        report.as_dict(),
        f"{report.cycles_per_s:.0f} cycles/s ({report.cycles} in {report.seconds:.1f} s, {report.clients} clients)\n"
        + aligned([["call", "p50 ms", "p95 ms", "p99 ms"], *rows]),
    )
    return 0
