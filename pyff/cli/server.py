"""`pyff server`: the embedded PostgreSQL server."""

import argparse
import dataclasses
from typing import Any

from pyff.cli.arguments import Commands, command, group
from pyff.cli.output import print_json, print_one

VERBS = {
    "start": ("start it, unless it is running", "pyff server start && pyff migrate"),
    "stop": ("stop it; its data stays", "pyff server stop"),
    "status": ("show whether and where it runs; exit code 3 if not", "pyff server status --json | jq .log"),
    "dsn": ("print its conninfo, for example for psql", 'psql "$(pyff server dsn)"'),
}


def register(commands: Commands) -> None:
    verbs = group(
        commands,
        "server",
        "start and stop the embedded PostgreSQL server in PYFF_HOME",
        'pyff server start && psql "$(pyff server dsn)"',
    )
    run = {"start": _start, "stop": _stop, "status": _status, "dsn": _dsn}
    for verb, (help_, example) in VERBS.items():
        sentence = help_[0].upper() + help_[1:]
        parser = command(verbs, verb, help_, f"The embedded PostgreSQL. {sentence}.", example, database=False)
        parser.set_defaults(run=run[verb])


def _start(args: argparse.Namespace) -> int:
    from pyff.postgres import start

    server = start()
    said = f"PostgreSQL {server.status.version} {'started' if server.started else 'was already running'}"
    print_one(args, {"started": server.started, "version": server.status.version, "dsn": server.dsn}, said)
    if not args.json:
        print("  pyff migrate                    installs or upgrades the engine")
        print("  pyff sql                        opens psql")
    return 0


def _stop(args: argparse.Namespace) -> int:
    from pyff.postgres import stop

    stopped = stop()
    print_one(args, {"stopped": stopped}, "stopped" if stopped else "was not running")
    return 0


def _status(args: argparse.Namespace) -> int:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from pyff.postgres import status

    now = status()
    fields: dict[str, Any] = dataclasses.asdict(now)
    if now.dsn:  # an external one may carry a password
        fields["dsn"] = make_conninfo("", **{**conninfo_to_dict(now.dsn), "password": None})
    if args.json:
        print_json(fields)
    else:
        print("running" if now.running else "not running", "(named by PYFF_DSN)" if now.external else "")
        for name, value in fields.items():
            if name not in ("running", "external") and value is not None:
                print(f"  {name + ':':<15}{value}")
    return 0 if now.running else 3


def _dsn(args: argparse.Namespace) -> int:
    from pyff.postgres import dsn

    found = dsn()
    print_one(args, {"dsn": found}, found)
    return 0
