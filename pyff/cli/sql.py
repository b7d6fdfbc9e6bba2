"""`pyff sql`: open psql on pyff's database, or run a statement."""

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from pyff.cli.arguments import Commands, command, given_input, text
from pyff.cli.database import connection, find
from pyff.cli.output import cell, print_json
from pyff.cli.table import aligned
from pyff.failure import Failure


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "sql",
        "open psql, or run a statement",
        "Without a statement, opens psql on the database that the other commands use. With one or several statements, "
        "runs them in one transaction, unless they commit themselves, and prints the rows; psql is not needed.",
        "pyff sql 'select * from ff_check_invariants()'",
        "pyff sql --json 'table ff_v_lane'",
        "pyff sql < report.sql",
    )
    parser.add_argument("statement", nargs="?", type=text, help="- reads it from the input")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    statement = args.statement
    if statement == "-" or (statement is None and not given_input().isatty()):
        statement = given_input().read()
    if statement is None:
        return _psql(find(args))
    if "\0" in statement:  # the server would read it as the end of the statement
        raise Failure("a statement cannot contain a zero byte", hint="check what is piped in")
    with connection(args) as conn:
        cursor = conn.execute(statement.encode())
        while True:
            _print(args, cursor)
            if not cursor.nextset():
                return 0


def _print(args: argparse.Namespace, cursor: Any) -> None:  # noqa: ANN401
    if cursor.description is None:
        if args.json:
            print_json({"status": cursor.statusmessage})
        else:
            print(cursor.statusmessage)
        return
    names = [column.name for column in cursor.description]
    if args.json:
        for row in cursor:
            print_json(dict(zip(names, row, strict=True)))
        return
    rows = [[cell("", value, shorten=False) for value in row] for row in cursor]
    if names:
        print(aligned([names, *rows]))
    print(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")


def _psql(dsn: str) -> int:
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    from pyff.postgres import PgError
    from pyff.postgres import find as find_binaries

    program = shutil.which("psql")
    if program is None:
        try:
            bundled = find_binaries().bindir / "psql"
        except PgError:
            bundled = Path("psql")
        if not bundled.exists():
            raise Failure("psql is not installed", hint="give a statement: pyff sql 'select 1'")
        program = str(bundled)
    given = conninfo_to_dict(dsn)
    password = given.pop("password", None)  # the list of processes is public, the environment is not
    environment = {**os.environ, **({"PGPASSWORD": str(password)} if password else {})}
    sys.stdout.flush()
    os.execve(program, ["psql", make_conninfo("", **given)], environment)  # noqa: S606
