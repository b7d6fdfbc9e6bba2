"""`pyff lane`: control the submission to and the claims from a lane."""

import argparse

from pyff.cli.arguments import LIMIT, Commands, command, group, text
from pyff.cli.database import engine
from pyff.cli.output import print_one, print_rows

VERBS = {
    "pause": ("paused", "reject claims, accept submissions"),
    "resume": ("active", "accept claims and submissions"),
    "drain": ("draining", "reject submissions, accept claims"),
    "disable": ("disabled", "reject claims and submissions"),
}
COLUMNS = {
    "lane": "lane_id",
    "state": "state",
    "reason": "state_reason",
    "since": "state_changed_at_ms",
    "registered": "registered_at_ms",
    "by": "registered_by",
}


def register(commands: Commands) -> None:
    verbs = group(
        commands, "lane", "list, pause and resume lanes", "pyff lane pause mail --reason 'provider is down'"
    )
    parser = command(
        verbs, "list", "list the lanes", "Lists the lanes and their states.", "pyff lane list --json"
    )
    parser.set_defaults(run=_list)
    for verb, (state, help_) in VERBS.items():
        parser = command(
            verbs,
            verb,
            help_,
            f"Makes a lane {state}: {help_}. Existing leases are not affected.",
            f"pyff lane {verb} mail --reason 'maintenance at the provider'",
        )
        parser.add_argument("lane", type=text)
        parser.add_argument("--reason", type=text, help="why; shown by lane list and kept in the events")
        parser.set_defaults(run=_set, state=state)


def _list(args: argparse.Namespace) -> int:
    with engine(args) as db:
        rows = db.list_lanes(limit=LIMIT)
        while rows and len(rows) % LIMIT == 0:
            page = db.list_lanes(after=rows[-1].lane_id, limit=LIMIT)
            rows += page
            if not page:
                break
    print_rows(args, rows, COLUMNS, "no lane: the first submission registers one")
    return 0


def _set(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.set_lane_state(args.lane, args.state, reason=args.reason)
    before = f", it was {done.previous_state}" if done.outcome == "changed" else ""
    already = " already" if done.outcome == "unchanged" else ""
    fresh = " (a new lane)" if done.outcome == "created" else ""
    print_one(
        args,
        {
            "lane_id": args.lane,
            "outcome": done.outcome,
            "previous_state": done.previous_state,
            "state": done.state,
        },
        f"lane {args.lane} is {done.state}{already}{before}{fresh}",
    )
    return 0
