"""`pyff top`: lanes, workers and failures, live."""

import argparse
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyff.cli.arguments import Commands, command, count, duration
from pyff.cli.database import connection
from pyff.cli.output import cell, moment, on_terminal, print_json, span
from pyff.cli.table import aligned

if TYPE_CHECKING:
    from pyff.overview import Overview

WORKERS = 10
HOME, CLEAR_LINE, CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"  # the alternate screen, without the cursor
PATIENCE_MS = 10_000


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "top",
        "watch lanes, workers and failures",
        "Shows the lanes (ready, running, delayed, the wait of the oldest, completions per second), the workers and "
        "the latest failures, refreshed every two seconds; q or ctrl-c ends it. Counts are capped (1000+), so it is "
        "cheap on a large database. --json prints one object per refresh. The role ff_reader is enough.",
        "pyff top",
        "pyff top --once --json | jq '.lanes[] | select(.ready > 0)'",
    )
    parser.add_argument("--once", action="store_true", help="look once")
    parser.add_argument("--count", type=count, metavar="N", help="end after N refreshes")
    parser.add_argument(
        "--interval", type=duration, default=2000, metavar="TIME", help="time between refreshes (default 2s)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from pyff.migrate import require_current
    from pyff.overview import look

    left = 1 if args.once else args.count
    live = on_terminal(sys.stdout) and not args.json and left is None
    with connection(args) as conn:
        require_current(conn)
        conn.execute(f"set statement_timeout = {PATIENCE_MS}")
        database = f"{conn.info.dbname} on {conn.info.host or 'localhost'}"
        with _screen(live) as pressed:
            while True:
                found = look(conn)
                if args.json:
                    print_json(found.as_dict())
                elif live:
                    _paint(page(found, database))
                else:
                    print(page(found, database))
                sys.stdout.flush()
                if left is not None:
                    left -= 1
                    if left <= 0:
                        return 0
                if pressed(args.interval / 1000):
                    return 0


def page(found: "Overview", database: str) -> str:
    """The screen for people."""
    ready = sum(lane.ready for lane in found.lanes)
    more = "+" if any(lane.ready_capped for lane in found.lanes) else ""
    running = sum(lane.running for lane in found.lanes)
    rate = sum(lane.rate_per_s for lane in found.lanes)
    alive = sum(1 for worker in found.workers if worker.alive)
    parts = [
        f"pyff  {moment(found.now_ms)}  {database}  schema {found.schema_version}",
        f"ready {ready}{more}  running {running}  ends {rate:.1f}/s  workers alive {alive}",
        "",
        _lanes(found),
        "",
        _workers(found),
    ]
    if found.failures:
        parts += ["", _failures(found)]
    return "\n".join(parts)


def _lanes(found: "Overview") -> str:
    busy = sorted(found.lanes, key=lambda lane: (-lane.ready - lane.running, lane.lane_id))
    rows = [
        [
            lane.lane_id,
            lane.state,
            f"{lane.ready}{'+' if lane.ready_capped else ''}",
            "" if lane.oldest_ready_ms is None else span(max(0, lane.oldest_ready_ms)),
            f"{lane.running}{'+' if lane.held_capped else ''}",
            str(lane.lapsed or ""),
            str(lane.delayed or ""),
            f"{lane.rate_per_s:.1f}",
        ]
        for lane in busy
    ]
    titles = ["lane", "state", "ready", "oldest", "running", "lapsed", "delayed", "ends/s"]
    return aligned([titles, *rows]) if rows else "  no lane"


def _workers(found: "Overview") -> str:
    rows = [
        [
            worker.worker_instance_id,
            {True: "alive", False: "silent", None: "not registered"}[worker.alive],
            str(worker.leases),
            "" if worker.silent_ms is None else span(max(0, worker.silent_ms)),
            cell("", worker.lanes),
        ]
        for worker in found.workers[:WORKERS]
    ]
    if not rows:
        return "  no worker"
    rest = len(found.workers) - len(rows)
    return aligned([["worker", "state", "leases", "last seen", "lanes"], *rows]) + (
        f"\n  and {rest} more" if rest else ""
    )


def _failures(found: "Overview") -> str:
    rows = [
        [
            span(max(0, found.now_ms - failed.occurred_at_ms)),
            failed.outcome,
            failed.lane_id or "",
            failed.execution_id,
            cell("", failed.reason),
        ]
        for failed in found.failures
    ]
    return aligned([["ago", "failure", "lane", "execution", "reason"], *rows])


def _paint(text: str) -> None:
    width, height = shutil.get_terminal_size()
    lines = [line[:width] for line in text.splitlines()[: height - 1]]
    sys.stdout.write(HOME + "".join(f"{line}{CLEAR_LINE}\n" for line in lines) + CLEAR_REST)


@contextmanager
def _screen(live: bool) -> Iterator[Callable[[float], bool]]:
    """Yields a function that waits, and returns whether q was pressed meanwhile."""
    if not live:
        yield _sleep
        return
    keys = sys.stdin.isatty()
    sys.stdout.write(ENTER)
    try:
        if keys:
            import termios
            import tty

            before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
        try:
            yield _key if keys else _sleep
        finally:
            if keys:
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
    finally:
        sys.stdout.write(LEAVE)
        sys.stdout.flush()


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _key(seconds: float) -> bool:
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and sys.stdin.read(1) in ("q", "Q", "\x1b", "")
