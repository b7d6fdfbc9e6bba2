"""`pyff migrate`: install or upgrade the SQL side."""

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from pyff.cli.arguments import Commands, command
from pyff.cli.database import find, open_one
from pyff.cli.output import print_one
from pyff.failure import Failure

if TYPE_CHECKING:
    from pyff.migrate import Report


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "migrate",
        "install pyff into a database, or upgrade it to this release",
        "Installs pyff, or upgrades it to this release. Safe to repeat. Functions and views go into the schema that"
        " callers use, tables and helpers into a private one.",
        "pyff migrate --dsn postgresql://localhost/app",
        "pyff migrate --schema jobs",
        "pyff migrate --check || echo 'not current'",
        "pyff migrate --sql > pyff.sql",
    )
    parser.add_argument(
        "--schema",
        metavar="NAME",
        help="for functions and views; it must exist (default: the first one of the search_path; with --sql public)",
    )
    parser.add_argument(
        "--private-schema",
        metavar="NAME",
        help="for tables and helpers; only a second installation in a database needs to name another one (default: ff)",
    )
    parser.add_argument(
        "--no-roles", action="store_true", help="create no roles; grant only to existing roles"
    )
    parser.add_argument("--yes", action="store_true", help="confirms --rollback-to")
    way = parser.add_mutually_exclusive_group()
    way.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 unless the schema is current"
    )
    way.add_argument(
        "--sql",
        action="store_true",
        help="print the installation as a script for `psql -f`, without connecting",
    )
    way.add_argument(
        "--rollback-to",
        type=int,
        metavar="N",
        help="undo all migrations after N, data included (0: all of them)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyff.migrate import Status, check, migrate, render_sql, rollback

    place = {"schema": args.schema, "private_schema": args.private_schema}
    if args.sql:
        sys.stdout.write(render_sql(**place, roles=not args.no_roles))
        return 0
    dsn = find(args)
    open_one(dsn).close()  # for the best message on a connection error
    if args.check:
        state = check(dsn, **place)
        _print(args, str(state), dataclasses.asdict(state))
        return 0 if state.status is Status.CURRENT else 1
    if args.rollback_to is not None:
        if not args.yes:
            raise Failure(
                f"rolling back to {args.rollback_to} deletes the data of every later migration",
                hint="add --yes to confirm",
            )
        undone = rollback(dsn, args.rollback_to, **place)
        _print(args, "undone: " + (", ".join(undone) or "nothing"), {"undone": undone})
        return 0
    report = migrate(dsn, **place, roles=not args.no_roles)
    _print(args, _told(report), dataclasses.asdict(report))
    return 0


def _told(report: "Report") -> str:
    done = ["applied " + ", ".join(report.applied)] if report.applied else []
    done += ["replaced the functions"] if report.functions_applied else []
    done += ["dropped " + "; ".join(report.dropped)] if report.dropped else []
    done += ["created the roles " + ", ".join(report.roles_created)] if report.roles_created else []
    what = "; ".join(done) or "nothing to do"
    return f"schema {report.schema} is at version {report.schema_version}: {what}"


def _print(args: argparse.Namespace, line: str, fields: dict[str, Any]) -> None:
    print_one(args, fields, line)
