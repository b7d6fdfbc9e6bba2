"""`pyff requeue`: make executions claimable now."""

import argparse
from typing import TYPE_CHECKING

from pyff.cli.arguments import Commands, command, text
from pyff.cli.batch import add_targets, each
from pyff.cli.database import engine
from pyff.cli.exits import Later
from pyff.cli.output import moment
from pyff.cli.show import describe
from pyff.failure import Failure

if TYPE_CHECKING:
    from pyff._generated.results import DescribeExecutionResult
    from pyff.engine import Engine

Answer = tuple[str, str]  # the action taken, and the resulting state


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "requeue",
        "make executions claimable now",
        "Makes executions claimable now. A failed, cancelled, expired or skipped execution is replayed; one whose "
        "delay is over or whose lease has expired is put back; one that is held or rate limited is released; one that "
        "is already claimable is not changed. --force also revokes a live lease (the worker's calls are rejected from "
        "then on), resumes a suspended execution without its signals, and runs a completed one again. Unexpired "
        "delays and dependencies stay.",
        "pyff requeue 018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
        "pyff requeue --lane mail --state failed --yes",
        "pyff requeue 018f3a2e-7b6c-7d1e-9f00-aabbccddee07 --force --reason 'the worker hangs'",
    )
    add_targets(parser)
    parser.add_argument("--force", action="store_true", help="also if leased, suspended or completed")
    parser.add_argument(
        "--reason", type=text, default="requeued by an operator", help="why; kept in the events"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    def act(db: "Engine", one: str) -> tuple[dict[str, object], str]:
        found = describe(db, one)
        how, state = _requeue(db, found, args.force, args.reason)
        before: str = found.public_state
        return {"outcome": how, "public_state": state, "previous_state": before}, f"{how}, is {state}"

    with engine(args) as db:
        return each(args, db, "requeue", act)


def _requeue(db: "Engine", found: "DescribeExecutionResult", force: bool, reason: str) -> Answer:
    one = found.execution_id
    match str(found.public_state):
        case "failed" | "cancelled" | "expired" | "skipped":
            return "replayed", db.replay_execution(one, reason=reason).public_state
        case "completed":
            _forced(force, f"{one} has completed", "--force runs it again")
            return "replayed", db.replay_execution(one, reason=reason).public_state
        case "waiting" | "resumable" if found.blocking_reason != "paused_by_operator":
            return "already queued", found.public_state
        case "waiting" | "rate_limited":
            return _released(db, found)
        case "active":
            return _taken_back(db, found, force, reason)
        case "suspended":
            _forced(
                force,
                f"{one} waits for signals",
                "--force resumes it without them; pyff approve sends one",
            )
            return "resumed", db.resume_execution(one).public_state
        case "delayed":
            done = db.promote_delayed(one)
            if done.outcome == "promoted":
                return "promoted", str(done.public_state)
            if done.outcome == "not_due":
                raise Failure(
                    f"{one} is delayed until {moment(found.delay_until_ms or 0)}",
                    hint="a delay cannot be shortened; pyff cancel and pyff replay restart it",
                )
        case "waiting_children":
            raise Failure(
                f"{one} waits for other executions", hint=f"pyff flow show {found.flow_id} shows which"
            )
    raise Later(f"{one} has just changed", hint="try again")


def _taken_back(db: "Engine", found: "DescribeExecutionResult", force: bool, reason: str) -> Answer:
    one = found.execution_id
    if not found.lease_live:
        db.mark_lease_expired_if_due(one)  # records the event; the execution is claimable either way
        return "lease had ended", "active"
    _forced(
        force,
        f"{found.worker_instance_id} works on {one} under a live lease until {moment(found.lease_expires_at_ms or 0)}",
        "--force revokes it; the worker's calls are rejected from then on",
    )
    db.revoke_lease(one, reason=reason, expected_lease_id=found.lease_id)
    return "lease revoked", "active"


def _released(db: "Engine", found: "DescribeExecutionResult") -> Answer:
    done = db.unblock_execution(found.execution_id)
    return done.outcome, done.public_state


def _forced(force: bool, message: str, hint: str) -> None:
    if not force:
        raise Failure(message, hint=hint)
