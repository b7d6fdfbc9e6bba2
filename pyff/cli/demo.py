"""`pyff demo`: from nothing to finished work, and the SQL to look at it."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyff.failure import Failure

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def register(commands: "Commands") -> None:
    parser = commands.add_parser(
        "demo",
        help="show the engine at work on a server of its own",
        description="Starts the kept server (or uses PYFF_DSN), migrates it, runs some work and shows what happened.",
        epilog="example: pyff demo --keep && psql \"$(pyff server dsn)\" -c 'table ff_exec_core'",
    )
    parser.add_argument("--keep", action="store_true", help="leave the server running")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyff import demo
    from pyff.cli.table import aligned
    from pyff.flow_picture import draw, load
    from pyff.migrate import migrate

    with _database(args.keep) as dsn:
        report = migrate(dsn)
        print(f"database ready: schema version {report.schema_version}")
        story = demo.run(dsn, print)
        print(
            f"{story.submitted} executions submitted, {story.duplicates} repeated request recognised,"
            f" {story.completed} completed in {story.seconds:.1f} s, {story.reclaimed} of them after a crash"
        )
        for title, rows in demo.look(dsn, story.namespace).items():
            print(f"\n{title}:\n{aligned(rows)}")
        picture = load(dsn, story.flow_id)
        if picture is not None:
            print(f"\na flow in which two of three were enough:\n{draw(picture)}")
        sound = story.reclaimed and story.approved and story.flow_state == "completed"
        if story.completed != story.submitted or not sound:
            raise Failure(
                "the demonstration did not finish its work", hint="please report this, with the table above"
            )
        print(_next_steps(dsn if args.keep else "", story.namespace))
    return 0


@contextmanager
def _database(keep: bool) -> Iterator[str]:
    """PYFF_DSN, or the kept server, which is stopped in the end if it was not running before."""
    from pyff import postgres

    if given := postgres.external_dsn():
        yield given
        return
    with postgres.start(reap=not keep) as server:
        yield server.dsn


_NEXT_STEPS = r"""
look further:
  {connect}
  \df+ ff_*
  select * from ff_event where namespace = '{namespace}' order by event_id;
  select * from ff_create_execution(p_lane_id => 'default');
  select * from ff_claim(p_lane_id => 'default', p_worker_id => 'me', p_worker_instance_id => 'me-1');
  select * from ff_complete(p_handle => '...the handle of the claim...');
  select * from ff_list_suspended();
  select * from ff_check_invariants();"""


def _next_steps(dsn: str, namespace: str) -> str:
    connect = f"psql '{dsn}'" if dsn else "./demo --keep leaves the server running and says how to connect"
    return _NEXT_STEPS.format(connect=connect, namespace=namespace)
