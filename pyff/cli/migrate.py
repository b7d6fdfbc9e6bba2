"""`pyff migrate`: install or upgrade the SQL side."""

import argparse
import dataclasses
import json
import sys
from typing import Any

from pyff.failure import Failure
from pyff.migrate import Report, Status, check, migrate, render_sql, rollback


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "migrate",
        help="install pyff into a database, or bring it up to this release",
        description="Installs pyff into the first schema of the search_path, or brings it up to this "
        "release. Safe to repeat. Without --dsn: PYFF_DSN, else the server that `pyff server` keeps.",
    )
    command.add_argument("--dsn", help="a libpq connection string or URI")
    command.add_argument(
        "--no-roles", action="store_true", help="create no roles; grant only to those that exist"
    )
    command.add_argument("--json", action="store_true", help="print the result as one JSON object")
    command.add_argument("--yes", action="store_true", help="confirms --rollback-to")
    way = command.add_mutually_exclusive_group()
    way.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 unless the schema is current"
    )
    way.add_argument(
        "--sql", action="store_true", help="print the whole installation for `psql -f`; connects to nothing"
    )
    way.add_argument(
        "--rollback-to",
        type=int,
        metavar="N",
        help="undo all migrations after N, data included (0: all of them)",
    )
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.sql:
        sys.stdout.write(render_sql(roles=not args.no_roles))
        return 0
    dsn = _dsn(args.dsn)
    if args.check:
        state = check(dsn)
        _print(args, str(state), dataclasses.asdict(state))
        return 0 if state.status is Status.CURRENT else 1
    if args.rollback_to is not None:
        if not args.yes:
            raise Failure(
                f"rolling back to {args.rollback_to} destroys the data of every later migration",
                hint="add --yes if that is what you want",
            )
        undone = rollback(dsn, args.rollback_to)
        _print(args, "undone: " + (", ".join(undone) or "nothing"), {"undone": undone})
        return 0
    report = migrate(dsn, roles=not args.no_roles)
    _print(args, _told(report), dataclasses.asdict(report))
    return 0


def _dsn(given: str | None) -> str:
    from pyff import postgres

    return given or postgres.dsn()


def _told(report: Report) -> str:
    done = ["applied " + ", ".join(report.applied)] if report.applied else []
    done += ["replaced the functions"] if report.functions_applied else []
    done += ["dropped " + "; ".join(report.dropped)] if report.dropped else []
    done += ["created the roles " + ", ".join(report.roles_created)] if report.roles_created else []
    what = "; ".join(done) or "nothing to do"
    return f"schema {report.schema} is at version {report.schema_version}: {what}"


def _print(args: argparse.Namespace, line: str, fields: dict[str, Any]) -> None:
    print(json.dumps(fields) if args.json else line)
