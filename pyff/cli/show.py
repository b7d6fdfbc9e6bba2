"""`pyff show`: all details of one execution."""

import argparse
import dataclasses
from typing import TYPE_CHECKING

from pyff.cli.arguments import Commands, command, execution_id
from pyff.cli.database import engine
from pyff.cli.exits import Missing
from pyff.cli.output import cell, fields, print_fields, print_json, print_rows, text_of

if TYPE_CHECKING:
    from pyff._generated.results import DescribeExecutionResult, ListPendingWaitpointsRow
    from pyff.engine import Engine

ATTEMPTS = {
    "attempt": "attempt_index",
    "type": "attempt_type",
    "state": "state",
    "worker": "worker_instance_id",
    "started": "started_at_ms",
    "ended": "ended_at_ms",
    "reason": "failure_reason",
}
WAITPOINTS = {
    "waitpoint": "waitpoint_id",
    "key": "waitpoint_key",
    "state": "state",
    "signals": "required_signal_names",
    "received": "signal_count",
    "expires": "expires_at_ms",
}
CHILDREN = {
    "child": "execution_id",
    "kind": "execution_kind",
    "lane": "lane_id",
    "state": "public_state",
    "detached": "detached",
    "created": "created_at_ms",
}
NAMED = ("execution_id", "public_state", "lease_live")  # already in the first line
PAGE = 100
DETAILS = (
    *("lifecycle_phase", "ownership_state", "eligibility_state", "blocking_reason"),
    *("terminal_outcome", "attempt_state", "lane_state", "payload_encoding", "policy", "total_attempt_count"),
    *("current_attempt_index", "current_attempt_id", "lease_id", "lease_epoch"),
    *("current_suspension_id", "current_waitpoint_id", "lease_acquired_at_ms", "lease_renewed_at_ms"),
    *("last_transition_at_ms", "last_mutation_at_ms"),
)


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "show",
        "show an execution: state, attempts, payload, result",
        "Shows an execution: its state and the reason of it, its attempts, payload and result, its waits and its "
        "children. --all prints every column, --json prints everything as one object.",
        "pyff show '{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07'",
        "pyff show 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --json | jq .result",
    )
    parser.add_argument("execution_id", type=execution_id, help="{fp:N}:<uuid>, or the uuid")
    parser.add_argument("--all", action="store_true", help="print every column")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    with engine(args) as db:
        found = describe(db, args.execution_id)
        context = db.read_execution_context(args.execution_id)
        attempts = db.list_attempts(args.execution_id)
        result = db.get_execution_result(args.execution_id)
        waitpoints = _waitpoints(db, found)
        children = db.list_children(args.execution_id, limit=PAGE)
    payload = context.payload if context else None
    outcome = result.result if result else None
    if args.json:
        print_json(
            {
                **fields(found),
                "payload": payload,
                "result": outcome,
                "result_encoding": result.result_encoding if result else None,
                "attempts": [dataclasses.asdict(row) for row in attempts],
                "waitpoints": [dataclasses.asdict(row) for row in waitpoints],
                "children": [dataclasses.asdict(row) for row in children],
            }
        )
        return 0
    print(f"{found.execution_id} is {found.public_state}{_because(found)}")
    print_fields(found, NAMED if args.all else (*NAMED, *DETAILS, *_usual(found)))
    for title, content in (("payload", payload), ("result", outcome)):
        if content is not None:
            print(f"\n{title}: {cell('', text_of(content), shorten=False)}")
    if attempts:
        print("\nattempts:")
        print_rows(args, attempts, ATTEMPTS, "")
    if waitpoints:
        print("\nwaits for signals:")
        print_rows(args, waitpoints, WAITPOINTS, "")
    if children:
        print("\nchildren:" if len(children) < PAGE else f"\nchildren (the first {PAGE}):")
        print_rows(args, children, CHILDREN, "")
    return 0


def _usual(found: "DescribeExecutionResult") -> list[str]:
    """Columns with their usual value."""
    return [
        name
        for name, value in fields(found).items()
        if value in (0, ()) or (name, value) == ("namespace", "default")
    ]


def describe(db: "Engine", wanted: str) -> "DescribeExecutionResult":
    """The execution; raises Missing if there is none."""
    found = db.describe_execution(wanted)
    if found is None:
        from uuid import UUID

        flow = db.describe_flow(UUID(wanted[-36:]))
        raise Missing(
            f"there is no execution {wanted}",
            hint=f"it is a flow: pyff flow show {flow.flow_id}" if flow else "pyff ls lists executions",
        )
    return found


def _because(found: "DescribeExecutionResult") -> str:
    why = [found.failure_reason, found.cancellation_reason, found.blocking_detail]
    if found.blocking_reason not in ("none", "waiting_for_worker"):
        why.insert(0, found.blocking_reason)
    said = "; ".join(cell("", reason) for reason in why if reason)
    paused = (
        f"; lane {found.lane_id} is {found.lane_state}" if found.lane_state not in ("active", None) else ""
    )
    return (f": {said}" if said else "") + paused


def _waitpoints(db: "Engine", found: "DescribeExecutionResult") -> "list[ListPendingWaitpointsRow]":
    from psycopg.errors import InsufficientPrivilege

    if found.current_suspension_id is None:
        return []
    try:
        return db.list_pending_waitpoints(found.execution_id)
    except InsufficientPrivilege:  # operators only
        return []
