"""`pyff server`: the embedded PostgreSQL that is kept between runs."""

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pyff.postgres import dsn, start, status, stop

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def register(commands: "Commands") -> None:
    parser = commands.add_parser(
        "server",
        help="the embedded PostgreSQL: start, stop, status, dsn",
        description="The embedded PostgreSQL that is kept between runs, in PYFF_HOME.",
    )
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    verbs.add_parser("start", help="start it, unless it runs").set_defaults(run=_start)
    verbs.add_parser("stop", help="stop it; its data stays").set_defaults(run=_stop)
    told = verbs.add_parser("status", help="what runs, and where; exit code 3 if nothing does")
    told.add_argument("--json", action="store_true", help="one JSON object")
    told.set_defaults(run=_status)
    verbs.add_parser("dsn", help='print its conninfo, as in: psql "$(pyff server dsn)"').set_defaults(
        run=_dsn
    )


def _start(_: argparse.Namespace) -> int:
    server = start()
    print(f"PostgreSQL {server.status.version} {'started' if server.started else 'was running already'}")
    print("  pyff migrate                    installs the engine, or brings it up to date")
    print('  psql "$(pyff server dsn)"       looks at it')
    return 0


def _stop(_: argparse.Namespace) -> int:
    print("stopped" if stop() else "was not running")
    return 0


def _status(args: argparse.Namespace) -> int:
    now = status()
    fields: dict[str, Any] = dataclasses.asdict(now)
    if now.dsn:  # an external one may carry a password
        fields["dsn"] = make_conninfo("", **{**conninfo_to_dict(now.dsn), "password": None})
    if args.json:
        print(json.dumps(fields, default=str))
    else:
        print("running" if now.running else "not running", "(named by PYFF_DSN)" if now.external else "")
        for name, value in fields.items():
            if name not in ("running", "external") and value is not None:
                print(f"  {name + ':':<15}{value}")
    return 0 if now.running else 3


def _dsn(_: argparse.Namespace) -> int:
    print(dsn())
    return 0
