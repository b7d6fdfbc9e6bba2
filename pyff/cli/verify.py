"""`pyff verify`: compare recorded client histories with the database."""

import argparse
import dataclasses

from pyff.cli.arguments import Commands, command
from pyff.cli.checkout import require_checkout
from pyff.cli.database import connection
from pyff.cli.output import print_json
from pyff.failure import Failure


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "verify",
        "compare recorded histories of clients with the database",
        "Compares histories, as tools.verify.Recorder writes them, with the database: nothing acknowledged is lost, no "
        "leases overlap, no limit was exceeded. Exit code 1: violations. --json prints an object per violation. It "
        "reads the tables: the login must own them or have pg_read_all_data. Runs from a checkout only.",
        "pyff verify worker-*.jsonl",
    )
    parser.add_argument("history", nargs="+", help="a history of one client")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    require_checkout("verify")
    from pyff.migrate import require_current
    from tools.verify import check, load

    with connection(args) as conn:
        require_current(conn)
        try:
            calls = load(args.history)
        except (OSError, ValueError, KeyError) as error:
            raise Failure(f"cannot read the histories: {error}") from None
        with conn.transaction():
            found = list(check(conn, calls))
    for violation in found:
        if args.json:
            print_json(dataclasses.asdict(violation))
        else:
            print(violation)
    if not args.json:
        print(f"{len(calls)} calls of {len(args.history)} clients: {len(found) or 'no'} violations")
    return 1 if found else 0
