"""`pyff signal`: deliver a signal to a waitpoint."""

import argparse
import os

from pyff.cli.arguments import Commands, command, execution_id, given_input, text, uuid
from pyff.cli.database import engine
from pyff.cli.output import print_one
from pyff.failure import Failure

TOKEN = "PYFF_WAITPOINT_TOKEN"  # noqa: S105


def register(commands: Commands) -> None:
    parser = command(
        commands,
        "signal",
        "deliver a signal to a waitpoint",
        "Delivers a signal to a waitpoint. It needs the token of the waitpoint; a login with the role ff_signaler is "
        f"enough. Without --token: {TOKEN}; --token - reads it from the input, which keeps it out of the list of "
        "processes.",
        "pyff signal '{fp:7}:018f3a2e-7b6c-7d1e-9f00-aabbccddee07' 018f3a2e-8000-7d1e-9f00-aabbccddee07 approve "
        "--token -",
    )
    parser.add_argument("execution_id", type=execution_id, help="{fp:N}:<uuid>, or the uuid")
    parser.add_argument("waitpoint_id", type=uuid, help="as ff_suspend or ff_create_waitpoint returned it")
    parser.add_argument("signal_name", type=text, help="the name that the condition waits for")
    parser.add_argument("--token", default=os.environ.get(TOKEN), help="the token of the waitpoint")
    parser.add_argument("--payload", help="the payload, as UTF-8 text")
    parser.add_argument(
        "--source", default="", metavar="NAME", help="the sender; counts for distinct_sources"
    )
    parser.add_argument("--correlation-id", metavar="ID", help="your own id of the signal")
    parser.add_argument(
        "--idempotency-key", metavar="KEY", help="a repetition with the same key has no effect"
    )
    parser.add_argument(
        "--resume-delay-ms", type=_ms, metavar="MS", help="delay before the execution resumes"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    given: str = args.token or ""
    token = given_input().readline().strip() if given.strip() == "-" else given
    if not token:
        raise Failure("a signal needs the token of its waitpoint", hint=f"give --token, or set {TOKEN}")
    for given in (token, args.payload, args.source, args.correlation_id, args.idempotency_key):
        _check(given)
    with engine(args) as db:
        answer = db.deliver_signal(
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
    print_one(args, answer, f"{answer.outcome}: {answer.effect}; the execution is {answer.public_state}")
    return 0


def _check(text: str | None) -> None:
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise Failure(
            "an argument is not UTF-8", hint="send binary payloads with ff_deliver_signal"
        ) from None


def _ms(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= 604_800_000):
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not between 0 and 604800000")
    return int(text)
