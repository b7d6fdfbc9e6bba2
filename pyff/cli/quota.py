"""`pyff quota`: limits on rate and concurrency."""

import argparse

from pyff.cli.arguments import Commands, command, duration, execution_id, group, number, text, uuid
from pyff.cli.database import connection, engine
from pyff.cli.exits import Missing
from pyff.cli.output import fields, print_fields, print_json, print_one, print_rows
from pyff.failure import Failure

COLUMNS = {
    "policy": "quota_policy_id",
    "window s": "window_seconds",
    "per window": "max_requests_per_window",
    "at once": "max_concurrent",
    "jitter ms": "jitter_ms",
    "in window": "window_count",
    "running": "active_concurrency",
}


def register(commands: Commands) -> None:
    verbs = group(
        commands, "quota", "list, define and change quota policies", "pyff quota show mail-provider"
    )
    parser = command(
        verbs,
        "list",
        "list the policies with their use",
        "Lists the policies. The role ff_reader is enough.",
        "pyff quota list --json",
    )
    parser.set_defaults(run=_list)

    parser = _verb(
        verbs,
        "show",
        "show a policy",
        "Shows a policy: its limits and their use.",
        "pyff quota show mail-provider",
    )
    parser.set_defaults(run=_show)

    parser = _verb(
        verbs,
        "create",
        "define a policy",
        "Defines a policy: starts per window, and concurrent executions; omitted limits are unlimited. The same "
        "definition may be repeated.",
        "pyff quota create mail-provider --per-window 100 --window 1m --at-once 5",
    )
    _limits(parser)
    parser.set_defaults(run=_create)

    parser = _verb(
        verbs,
        "set",
        "change the limits of a policy",
        "Changes the limits of a policy; omitted limits stay. Work that fits the new limits is released.",
        "pyff quota set mail-provider --per-window 200",
    )
    _limits(parser)
    parser.set_defaults(run=_set)

    parser = _verb(
        verbs,
        "attach",
        "put work under a policy",
        "Puts an execution, or a flow with its members, under a policy.",
        "pyff quota attach mail-provider --execution 018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
    )
    _target(parser)
    parser.set_defaults(run=_attach)

    parser = command(
        verbs,
        "detach",
        "take work out of its policy",
        "Takes an execution, or a flow, out of its policy.",
        "pyff quota detach --execution 018f3a2e-7b6c-7d1e-9f00-aabbccddee07",
    )
    _target(parser)
    parser.set_defaults(run=_detach)


def _verb(verbs: Commands, name: str, help_: str, description: str, example: str) -> argparse.ArgumentParser:
    parser = command(verbs, name, help_, description, example)
    parser.add_argument("quota_policy_id", type=text, help="the name of the policy")
    return parser


def _limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--window", type=duration, metavar="TIME", help="the length of the window, in whole seconds"
    )
    parser.add_argument("--per-window", type=number, metavar="N", help="starts per window; 0: unlimited")
    parser.add_argument("--at-once", type=number, metavar="N", help="concurrent executions; 0: unlimited")
    parser.add_argument("--jitter", type=duration, metavar="TIME", help="spread of the retry time")


def _target(parser: argparse.ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--execution", type=execution_id, metavar="ID")
    target.add_argument("--flow", type=uuid, metavar="ID")


def _list(args: argparse.Namespace) -> int:
    from pyff.engine import Engine

    with connection(args) as conn, Engine(conn, prepare_threshold=None) as db:
        db.ping()
        names = conn.execute(
            "select q.quota_policy_id from ff_v_quota q order by q.quota_policy_id"
        ).fetchall()
        rows = [
            {"quota_policy_id": name, **fields(found)}
            for (name,) in names
            if (found := db.read_quota_policy_limits(name)) is not None
        ]
    print_rows(args, rows, COLUMNS, "no policy: pyff quota create defines one")
    return 0


def _show(args: argparse.Namespace) -> int:
    with engine(args) as db:
        found = db.read_quota_policy_limits(args.quota_policy_id)
    if found is None:
        raise Missing(f"there is no quota policy {args.quota_policy_id}", hint="pyff quota list lists them")
    if args.json:
        print_json({"quota_policy_id": args.quota_policy_id, **fields(found)})
    else:
        print(f"{args.quota_policy_id}{' is unlimited' if found.is_unlimited else ''}")
        print_fields(found, ("is_unlimited",))
    return 0


def _create(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.create_quota_policy(
            args.quota_policy_id,
            window_seconds=_seconds(args.window) or 0,
            max_requests_per_window=args.per_window or 0,
            max_concurrent=args.at_once or 0,
            jitter_ms=args.jitter or 0,
        )
    said = "created" if done.outcome == "created" else "already exists"
    print_one(args, done, f"quota policy {args.quota_policy_id} {said}")
    return 0


def _set(args: argparse.Namespace) -> int:
    if all(given is None for given in (args.window, args.per_window, args.at_once, args.jitter)):
        raise Failure("nothing to change", hint="give --per-window, --window, --at-once or --jitter")
    with engine(args) as db:
        done = db.update_quota_policy(
            args.quota_policy_id,
            window_seconds=_seconds(args.window),
            max_requests_per_window=args.per_window,
            max_concurrent=args.at_once,
            jitter_ms=args.jitter,
        )
    print_one(
        args,
        {"quota_policy_id": args.quota_policy_id, **fields(done)},
        f"quota policy {args.quota_policy_id}: {done.outcome}, {done.released} executions released",
    )
    return 0


def _attach(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.attach_quota(args.quota_policy_id, execution_id=args.execution, flow_id=args.flow)
    return _attached(args, done.outcome)


def _detach(args: argparse.Namespace) -> int:
    with engine(args) as db:
        done = db.detach_quota(execution_id=args.execution, flow_id=args.flow)
    if done.outcome == "not_attached":
        raise Missing(f"{args.execution or args.flow} is under no quota policy")
    return _attached(args, done.outcome)


def _attached(args: argparse.Namespace, outcome: str) -> int:
    target = args.execution or str(args.flow)
    print_one(args, {"target": target, "outcome": outcome}, f"{target}: {outcome.replace('_', ' ')}")
    return 0


def _seconds(ms: int | None) -> int | None:
    if ms is not None and ms % 1000:
        raise Failure("a window is a whole number of seconds", hint="give 1s, 1m, 1h or 1d, or a multiple")
    return None if ms is None else ms // 1000
