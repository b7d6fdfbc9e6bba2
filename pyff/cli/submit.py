"""`pyff submit`: create an execution, or one for every line of the input."""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pyff.cli.arguments import (
    TERMINAL,
    Commands,
    account,
    command,
    duration,
    given_input,
    json_object,
    tag,
    text,
    uuid,
)
from pyff.cli.database import engine
from pyff.cli.exits import Later
from pyff.cli.output import cell, fields, print_json, print_one, span, text_of
from pyff.cli.progress import Progress
from pyff.failure import Failure

if TYPE_CHECKING:
    from pyff.engine import Engine

BATCH = 1000
LOOK_S = 0.2


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "submit",
        "submit an execution to a lane",
        "Submits an execution. With --lines, one for every line of the input, in batches of a thousand. With a "
        "repeated --key the outcome is `duplicate`, with the id of the existing execution.",
        "pyff submit mail --payload 'hello' --kind welcome --key greeting-1",
        "pyff submit mail --lines < addresses.txt",
        "pyff submit report --wait 5m && echo done",
    )
    parser.add_argument("lane", type=text, help="the lane; a new one is registered")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--payload", type=text, metavar="TEXT", help="the payload, as UTF-8")
    source.add_argument(
        "--payload-file", metavar="FILE", help="a file with the payload; - reads it from the input"
    )
    source.add_argument("--lines", action="store_true", help="submit every line of the input as a payload")
    parser.add_argument("--kind", type=text, default="", metavar="NAME", help="the kind of work")
    parser.add_argument("--key", type=text, help="idempotency key; --lines appends the line number")
    parser.add_argument("--priority", type=int, metavar="N", help="0 to 9000, higher first")
    parser.add_argument("--delay", type=duration, metavar="TIME", help="not before: 30s, 5m, 2h, 1d")
    parser.add_argument("--deadline", type=duration, metavar="TIME", help="expire after this time")
    parser.add_argument(
        "--tag", type=tag, action="append", default=[], metavar="KEY=VALUE", help="may be repeated"
    )
    parser.add_argument(
        "--capability",
        type=text,
        action="append",
        default=[],
        metavar="TOKEN",
        help="a required capability of the worker",
    )
    parser.add_argument(
        "--policy", type=json_object, default={}, metavar="JSON", help="retries, timeouts and other settings"
    )
    parser.add_argument("--namespace", type=text, default="default", metavar="NAME")
    parser.add_argument("--flow", type=uuid, metavar="ID", help="make it a member of this flow")
    parser.add_argument("--creator", type=text, metavar="NAME", help="who submits it (default: your account)")
    parser.add_argument(
        "--wait",
        type=duration,
        metavar="TIME",
        help="wait for its end, at most this long; exit code 0 only if it completed",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.lines and args.wait is not None:
        raise Failure("--wait is for one execution, not for --lines", hint="use pyff events --follow")
    payload = _payload(args)
    with engine(args) as db:
        common: dict[str, Any] = {
            "execution_kind": args.kind,
            "policy": args.policy,
            "tags": dict(args.tag),
            "required_capabilities": args.capability,
            "delay_ms": args.delay,
            "namespace": args.namespace,
            "flow_id": args.flow,
            "creator": account() if args.creator is None else args.creator,
        }
        if args.deadline is not None:
            common["deadline_at_ms"] = db.now_ms() + args.deadline
        if args.lines:
            return _many(args, db, common)
        made = db.create_execution(
            args.lane,
            payload=payload,
            payload_encoding=None if args.payload is None else "utf8",
            idempotency_key=args.key,
            priority=args.priority,
            **common,
        )
        if args.wait is None:
            print_one(args, made, f"{made.outcome} {made.execution_id} {made.public_state}")
            return 0
        return _wait(args, db, made.execution_id)


def _many(args: argparse.Namespace, db: "Engine", common: dict[str, Any]) -> int:
    outcomes = {"created": 0, "duplicate": 0}
    lines = _lines(given_input().buffer)
    with Progress("submitting", None) as bar:
        for first in itertools.count(1, BATCH):
            payloads = list(itertools.islice(lines, BATCH))
            if not payloads:
                break
            keys = [f"{args.key}-{n}" for n in range(first, first + len(payloads))] if args.key else None
            priorities = None if args.priority is None else [args.priority] * len(payloads)
            for row in db.create_executions(
                args.lane, payloads, idempotency_keys=keys, priorities=priorities, **common
            ):
                outcomes[row.outcome] += 1
                if args.json:
                    print_json(row)
            bar.advance(len(payloads))
    if not args.json:
        print(f"{outcomes['created']} created, {outcomes['duplicate']} duplicate")
    return 0


def _wait(args: argparse.Namespace, db: "Engine", execution_id: str) -> int:
    until = time.monotonic() + args.wait / 1000
    with Progress(f"waiting for {execution_id}", None) as bar:
        while True:
            found = db.get_execution_result(execution_id)
            state = found.public_state if found else "gone"
            if state in TERMINAL or found is None:
                break
            if time.monotonic() >= until:
                raise Later(
                    f"{execution_id} is {state} after {span(args.wait)}", hint=f"pyff show '{execution_id}'"
                )
            time.sleep(min(LOOK_S, max(0.0, until - time.monotonic())))
            bar.advance()
    if found is None:
        raise Failure(f"{execution_id} is gone", hint="retention has deleted it")
    text = cell("", text_of(found.result or b"") or found.failure_reason, shorten=False)
    print_one(
        args, {"execution_id": execution_id, **fields(found)}, f"{state} {execution_id} {text}".rstrip()
    )
    return 0 if state == "completed" else 1


def _payload(args: argparse.Namespace) -> bytes | None:
    if args.payload is not None:
        return str(args.payload).encode()
    if args.payload_file == "-":
        return given_input().buffer.read()
    return Path(args.payload_file).read_bytes() if args.payload_file else None


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    for line in stream:
        yield line.rstrip(b"\r\n")
