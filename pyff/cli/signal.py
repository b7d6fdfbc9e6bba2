"""`pyff signal`: deliver a signal to a waitpoint."""

import argparse
import dataclasses
import json
import os
import sys
from typing import TYPE_CHECKING
from uuid import UUID

from pyff.failure import Failure

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

TOKEN = "PYFF_WAITPOINT_TOKEN"  # noqa: S105


def register(commands: "Commands") -> None:
    parser = commands.add_parser(
        "signal",
        help="deliver a signal to a waitpoint",
        description="Delivers a signal to a waitpoint. Whoever has its token may; a login with the role ff_signaler is "
        f"enough. Without --dsn: PYFF_DSN, else the server that `pyff server` keeps. Without --token: {TOKEN}; "
        "--token - reads it from the input, which keeps it out of the list of processes.",
    )
    parser.add_argument("execution_id", help="{fp:N}:<uuid>, as ff_claim returned it")
    parser.add_argument("waitpoint_id", type=UUID, help="as ff_suspend or ff_create_waitpoint returned it")
    parser.add_argument("signal_name", help="the name that the condition waits for")
    parser.add_argument("--token", default=os.environ.get(TOKEN), help="the token of the waitpoint")
    parser.add_argument("--payload", help="a text that goes along, as UTF-8")
    parser.add_argument(
        "--source", default="", metavar="NAME", help="who says so; counts for distinct_sources"
    )
    parser.add_argument("--correlation-id", metavar="ID", help="an id of yours to find the signal by")
    parser.add_argument(
        "--idempotency-key", metavar="KEY", help="makes a repetition of this command harmless"
    )
    parser.add_argument(
        "--resume-delay-ms", type=_ms, metavar="MS", help="wait so long before the work goes on"
    )
    parser.add_argument("--dsn", help="a libpq connection string or URI")
    parser.add_argument("--json", action="store_true", help="print the answer as one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import psycopg

    from pyff import Engine, postgres

    given: str = args.token or ""
    token = sys.stdin.readline().strip() if given.strip() == "-" else given
    if not token:
        raise Failure("a signal needs the token of its waitpoint", hint=f"give --token, or set {TOKEN}")
    for text in (args.execution_id, token, args.signal_name, args.payload, args.source, args.correlation_id):
        _check(text)
    _check(args.idempotency_key)
    try:
        conn = psycopg.connect(args.dsn or postgres.dsn(), autocommit=True, fallback_application_name="pyff")
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        raise Failure(
            f"cannot connect to the database: {reason}",
            hint="check --dsn or PYFF_DSN, and that the server runs",
        ) from None
    with conn, Engine(conn) as engine:
        answer = engine.deliver_signal(
            args.execution_id,
            args.waitpoint_id,
            token,
            args.signal_name,
            payload=None if args.payload is None else args.payload.encode(),
            payload_encoding=None if args.payload is None else "utf8",
            source_identity=args.source,
            correlation_id=args.correlation_id,
            idempotency_key=args.idempotency_key,
            resume_delay_ms=args.resume_delay_ms,
        )
    if args.json:
        print(json.dumps(dataclasses.asdict(answer), default=str))
    else:
        print(f"{answer.outcome}: {answer.effect}; the execution is {answer.public_state}")
    return 0


def _check(text: str | None) -> None:
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise Failure(
            "an argument is not UTF-8", hint="payloads of bytes go through ff_deliver_signal"
        ) from None


def _ms(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= 604_800_000):
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not between 0 and 604800000")
    return int(text)
