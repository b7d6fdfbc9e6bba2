"""`pyff keys`: keys that sign waitpoint tokens."""

import argparse

from pyff.cli.arguments import Commands, command, duration, given_input, group, text
from pyff.cli.database import engine
from pyff.cli.output import print_one, print_rows

COLUMNS = {
    "key": "kid",
    "active": "active",
    "verifies": "verifying",
    "installed": "installed_at_ms",
    "expires": "expires_at_ms",
    "open waitpoints": "open_waitpoints",
}
ORIGIN = (
    "--secret - reads 64 hex digits from the input; without it the database generates the secret "
    "and never shows it"
)


def register(commands: Commands) -> None:
    verbs = group(commands, "keys", "seed, rotate and list the keys of waitpoint tokens", "pyff keys list")
    parser = command(
        verbs, "list", "list the keys", "Lists the keys; never a secret.", "pyff keys list --json"
    )
    parser.set_defaults(run=_list)
    seed = command(
        verbs,
        "seed",
        "install the first key",
        f"Installs a key if there is none, as pyff migrate does; safe to repeat. {ORIGIN}.",
        "pyff keys seed key-1",
    )
    seed.set_defaults(run=_seed)
    rotate = command(
        verbs,
        "rotate",
        "replace the signing key",
        f"Signs new tokens with a new key; tokens of the old one stay valid for the grace period. {ORIGIN}.",
        "pyff keys rotate key-2 --grace 7d",
    )
    rotate.add_argument(
        "--grace",
        type=duration,
        default=86_400_000,
        metavar="TIME",
        help="how long tokens of the old key stay valid (default 1d; 0s: not at all)",
    )
    rotate.set_defaults(run=_rotate)
    for parser in (seed, rotate):
        parser.add_argument("kid", type=text, help="the name of the key: letters, digits, . _ -")
        parser.add_argument("--secret", choices=["-"], help="read the secret from the input")


def _list(args: argparse.Namespace) -> int:
    with engine(args) as db:
        rows = db.list_waitpoint_hmac_kids()
    print_rows(args, rows, COLUMNS, "no key: pyff keys seed NAME installs one")
    return 0


def _seed(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.seed_waitpoint_hmac_secret(args.kid, secret_hex=_secret(args))
    differs = ", with another secret" if done.same_secret is False else ""
    active = "" if done.active else ", but it is not the active one"
    print_one(args, done, f"{done.outcome.replace('_', ' ')}: {done.kid}{differs}{active}")
    return 0 if done.active and done.same_secret is not False else 1


def _rotate(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.rotate_waitpoint_hmac_secret(args.kid, new_secret_hex=_secret(args), grace_ms=args.grace)
    before = f", {done.previous_kid} before" if done.previous_kid and done.outcome == "rotated" else ""
    print_one(args, done, f"{done.outcome}: {done.new_kid} signs now{before}")
    return 0


def _secret(args: argparse.Namespace) -> str | None:
    return given_input().readline().strip() if args.secret else None
