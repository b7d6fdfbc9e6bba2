"""`pyff approve`: send the signal that an execution waits for, as an operator."""

import argparse
from typing import TYPE_CHECKING

from pyff.cli.arguments import LIMIT, Commands, account, command, execution_id, text, uuid
from pyff.cli.database import engine
from pyff.cli.output import print_one, print_rows
from pyff.cli.show import describe
from pyff.failure import Failure

if TYPE_CHECKING:
    from pyff._generated.results import ListPendingWaitpointsRow
    from pyff.engine import Engine

COLUMNS = {
    "execution": "execution_id",
    "lane": "lane_id",
    "waits for": "reason_code",
    "detail": "reason_detail",
    "since": "suspended_at_ms",
    "until": "timeout_at_ms",
    "then": "timeout_behavior",
}
USUAL = "approve"


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "approve",
        "send the signal that a suspended execution waits for",
        "Sends a signal to a suspended execution as an operator: no token is needed. The waitpoint and the signal "
        "may be omitted if there is only one. The same decision of the same person counts once. Without an "
        "execution, lists the suspended ones.",
        "pyff approve",
        "pyff approve 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --note 'looks fine'",
        "pyff approve 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --signal reject",
    )
    parser.add_argument("execution_id", nargs="?", type=execution_id, help="{fp:N}:<uuid>, or the uuid")
    parser.add_argument(
        "--signal", type=text, metavar="NAME", help=f"the signal (default: {USUAL}, or the only one)"
    )
    parser.add_argument("--waitpoint", type=uuid, metavar="ID", help="the waitpoint (default: the only one)")
    parser.add_argument(
        "--as", dest="operator", type=text, metavar="NAME", help="who decides (default: your account)"
    )
    parser.add_argument("--note", type=text, help="text to send as the payload")
    parser.add_argument("--key", type=text, help="distinguishes decisions of one person (default: the name)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    with engine(args) as db:
        if args.execution_id is None:
            rows = db.list_suspended(limit=LIMIT)
            print_rows(args, rows, COLUMNS, "nothing waits")
            return 0
        found = describe(db, args.execution_id)
        point = _waitpoint(db, found.execution_id, args.waitpoint)
        who = args.operator or account()
        done = db.deliver_approval_signal(
            found.execution_id,
            found.lane_id,
            point.waitpoint_id,
            args.signal or _signal(point),
            args.key or who or "operator",
            operator_id=who or None,
            payload=None if args.note is None else args.note.encode(),
        )
    print_one(
        args, done, f"{done.outcome}: {done.effect.replace('_', ' ')}; the execution is {done.public_state}"
    )
    return 0


def _waitpoint(db: "Engine", one: str, wanted: object) -> "ListPendingWaitpointsRow":
    open_ones = db.list_pending_waitpoints(one, limit=LIMIT)
    chosen = [row for row in open_ones if wanted in (None, row.waitpoint_id)]
    active = [row for row in chosen if row.state == "active"] or chosen
    if not active:
        raise Failure(f"{one} has no such open waitpoint", hint=f"pyff show '{one}' lists what it waits for")
    if len(active) > 1:
        raise Failure(
            f"{one} has {len(active)} open waitpoints", hint=f"give --waitpoint: pyff show '{one}' lists them"
        )
    return active[0]


def _signal(point: "ListPendingWaitpointsRow") -> str:
    names = point.required_signal_names
    if not names or USUAL in names:
        return USUAL
    if len(names) > 1:
        raise Failure("several signals are possible: " + ", ".join(names), hint="give --signal")
    return names[0]
