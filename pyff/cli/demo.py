"""`pyff demo`: a ten-second demo, with SQL queries to inspect it."""

import argparse
import io
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyff.cli.arguments import Commands, command
from pyff.cli.checkout import require_checkout
from pyff.cli.database import open_one
from pyff.cli.output import in_colour, print_json


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "demo",
        "run a demo of the engine on its own server",
        "Starts the server of `pyff server` (or uses --dsn or PYFF_DSN), migrates it and produces a newsletter: a "
        "flow, a rate limit, a stream, a crash, an approval, a retry, a budget, each with the SQL to inspect it. "
        "Colour on a terminal, unless NO_COLOR is set. --json prints only where to find the results, as one object. "
        "Runs from a checkout only.",
        "pyff demo --keep && pyff sql 'table ff_v_execution'",
    )
    parser.add_argument("--keep", action="store_true", help="leave the server running")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    require_checkout("demo")
    from pyff.migrate import migrate
    from tools import demo

    out = io.StringIO() if args.json else sys.stdout
    with _database(args) as dsn:
        report = migrate(dsn)
        print(f"database ready: schema version {report.schema_version}", file=out)
        story = demo.run(dsn, demo.Screen(out, colour=out is sys.stdout and in_colour()))
    print(_NEXT_STEPS.format(connect=_connect(args), namespace=story.namespace), file=out)
    if args.json:
        print_json(story)
    return 0


@contextmanager
def _database(args: argparse.Namespace) -> Iterator[str]:
    """--dsn, PYFF_DSN, or the kept server, which is stopped at the end if it was not running before."""
    from pyff import postgres

    if given := args.dsn or postgres.external_dsn():
        open_one(given).close()  # for the best message on a connection error
        yield given
        return
    with postgres.start(reap=not args.keep) as server:
        yield server.dsn


_NEXT_STEPS = r"""
a task of your own, in five minutes: docs/quickstart.md
look further:
  {connect}
  \df+ ff_*
  select * from ff_v_event where namespace = '{namespace}' order by event_id;
  select * from ff_create_execution(p_lane_id => 'default');
  select * from ff_claim(p_lane_id => 'default', p_worker_id => 'me', p_worker_instance_id => 'me-1');
  select * from ff_complete(p_handle => '...the handle of the claim...');
  select * from ff_list_suspended();
  select * from ff_check_invariants();"""


def _connect(args: argparse.Namespace) -> str:
    """How to connect, if the server keeps running. `pyff sql` works without psql."""
    from pyff import postgres

    if not (args.dsn or postgres.status().dsn):
        return "./demo --keep leaves the server running and says how to connect"
    installed = Path(sys.executable).with_name("pyff")
    program = "pyff" if shutil.which("pyff") or not installed.exists() else installed
    return f"{program} sql{' --dsn ..' if args.dsn else ''}"
